"""GL0: loading and running."""
