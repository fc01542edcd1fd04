"""Words of notes that one part writes and another one reads."""

from __future__ import annotations

#: How a note begins on a gradient whose formula was judged, and not what it returns: the op
#: computes in a coarser dtype inside.
WITHOUT_CASTS = "judged without its casts to"
