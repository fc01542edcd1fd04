"""Repeated, guarded and interleaved calls."""
