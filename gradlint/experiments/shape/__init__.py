"""Comparisons of the shapes, dtypes and devices of gradients."""
