"""Values of one look at the host: its GPUs, itself, its engine; and the pure readers of what the samplers bring."""
