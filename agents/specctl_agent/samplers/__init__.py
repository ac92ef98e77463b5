"""What the agent sees the world with: one sampler a source, each in a thread of its own."""
