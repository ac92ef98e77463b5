"""All that touches the outside: SSH, processes, files, templates, HTTP, secrets; each third-party library has one module here."""
