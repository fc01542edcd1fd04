"""GL4: first-order values."""
