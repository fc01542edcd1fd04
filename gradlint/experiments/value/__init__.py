"""Experiments on first-order values."""
