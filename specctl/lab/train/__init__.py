"""Training of the lab's two models; the only part of the lab that imports torch, and nothing else imports it."""
