"""What the doctor finds: one file a subject, evidence in and findings out; pure, as the linter is."""
