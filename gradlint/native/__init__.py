"""Builds and loads C++ and CUDA: the reference operators in ``kernels/``, and users' extensions.

Everything is built on demand by torch's extension builder and ninja, in a process of its own,
and kept in a cache, from which a later process loads it in milliseconds. Importing this package
imports neither torch nor a compiler.
"""
