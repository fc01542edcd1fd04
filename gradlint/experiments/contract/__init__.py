"""Whether outputs depend on an input, and which inputs require grad."""
