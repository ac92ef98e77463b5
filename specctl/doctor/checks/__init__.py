"""The doctor's checks, one file a subject, found by their files (doctor/catalogue.py)."""
