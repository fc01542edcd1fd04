"""Calls on CUDA devices, and what a sanitizer reports of them."""
