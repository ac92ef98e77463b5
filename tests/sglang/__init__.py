"""The real SGLang on a test host, under specctl: what the lab engine imitates is checked against the original here."""
