"""Where the values of an input may lie, as inference calls it and as a report says it."""

from __future__ import annotations

#: Domain → how it reads in a report. The order is the order of trying.
DOMAINS = {
    "real": "all reals",
    "positive": "positive",
    "unit": "between 0 and 1",
    "small": "between -1 and 1",
    "above": "above 1",
    "rows": "rows sum to 1",
    "spd": "symmetric positive definite",
    "nsd": "symmetric negative definite",
    "tril": "lower triangular, positive on the diagonal",
    "lengths": "unit vectors along the last axis",
    "negative": "negative",
    "ordered": "increasing along the last axis",
}
