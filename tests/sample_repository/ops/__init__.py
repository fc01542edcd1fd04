"""The operators of the project."""
