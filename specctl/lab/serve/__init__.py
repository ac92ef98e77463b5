"""The lab's server: a small real one that speaks SGLang 0.5.23's dialect over HTTP and in its log (docs/lab-server.md)."""
