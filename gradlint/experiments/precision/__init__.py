"""Gradients in low precision against those in float64."""
