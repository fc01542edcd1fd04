"""GL2: shape, dtype and device of gradients."""
