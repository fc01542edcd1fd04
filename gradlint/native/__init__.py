"""Builds and loads C++ and CUDA: the reference operators in ``kernels/``, and users' extensions.

Everything is built on demand by torch's extension builder and ninja, in a process of its own, and
kept in a cache, from which later processes load it in milliseconds. The modules ``progress``,
``roots``, ``errors`` and ``compile`` do not import torch; the process that reports uses only these.
"""
