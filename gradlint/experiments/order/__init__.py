"""Differentiating twice."""
