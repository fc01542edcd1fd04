"""GL3: finiteness."""
