"""GL7: memory layout and size."""
