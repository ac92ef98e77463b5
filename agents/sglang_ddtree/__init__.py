"""DDTREE for an unedited SGLang: draft trees as a plugin, with live knobs.

`plugin.load` is the entry point that SGLang calls in each of its processes; nothing else here is imported from outside.
Nothing in this package imports specctl: the folder alone is what a host gets.
"""
