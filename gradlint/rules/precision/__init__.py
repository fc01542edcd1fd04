"""Precision and device: GL801."""
