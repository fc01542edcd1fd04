"""How large an expression and what it makes may be.

The limits stop accidents and hostile specs; no formula of an operator comes near them.
All are heuristic: the largest formula of ``specs/`` has under 300 characters and depth 14.
"""

from __future__ import annotations

#: Characters of one expression.
MAX_LENGTH = 4_000

#: Nesting depth of the syntax tree. The interpreter uses two Python frames a level.
MAX_DEPTH = 100

#: Elements of one tensor: 2**26 doubles are 512 MiB.
MAX_ELEMENTS = 2**26

#: Elements of all tensors made in one evaluation.
MAX_TOTAL = 2**27

#: Items of a list or tuple counted through all levels, and characters of a string.
MAX_ITEMS = 2**16

#: Bits of an integer.
MAX_BITS = 128
