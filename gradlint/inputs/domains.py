"""The domains that values of tensors are drawn from. Does not import torch."""

from __future__ import annotations

import re

#: Domain → how a report describes it, in the order in which inference tries them.
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
    "logs": "logarithms of rows that sum to 1",
    "orthogonal": "orthogonal matrices",
    "contraction": "matrices of spectral radius below 1",
    "triu": "upper triangular, positive on the diagonal",
}

#: Domain → how a report describes it, of those that are only tried where a gradient is wrong at
#: other values. "lower" and "upper" are triangular matrices that stay so when they are moved.
CONFINED = {
    "skew": "skew-symmetric",
    "lower": "lower triangular",
    "upper": "upper triangular",
    "signs": "-1 or 1",
    "binary": "0 or 1",
}

#: Domains of square matrices.
OF_SQUARES = frozenset(
    {"spd", "nsd", "tril", "triu", "orthogonal", "contraction", "skew", "lower", "upper"}
)

#: Domain → words of error texts, docstrings and comments that ask for it, the most special first.
WORDS = (
    ("nsd", r"negative[- ](?:semi-?)?definite|\bhurwitz\b"),
    (
        "spd",
        r"positive[- ](?:semi-?)?definite|\bs?psd\b|\bspd\b|\bcovariance\b"
        r"|(?<!non-)(?<!not )(?<!un)\bsymmetric\b(?! (?:range|pad|quant|mode|loss|diff))",
    ),
    ("orthogonal", r"\borthogonal\b|\borthonormal\b|\brotation matri"),
    ("tril", r"lower[- ]triangular|\bcholesky factor"),
    ("triu", r"upper[- ]triangular"),
    ("logs", r"\blog[- _]?prob"),
    (
        "lengths",
        r"\bunit[- ](?:vectors?|quaternions?|norm|length)\b|\b(?:normali[sz]ed|unit)\b.{0,20}"
        r"\b(?:vector|quaternion|embedding)|(?:vector|quaternion|embedding)s?\b.{0,20}"
        r"\b(?:normali[sz]ed|unit)\b",
    ),
    (
        "rows",
        r"sums? (?:up )?to (?:1|one)\b|\bstochastic matri|row-stochastic|\bsimplex\b"
        r"|probability (?:vector|distribution)|\bdistributions\b|\bone-?hot\b",
    ),
    ("contraction", r"\bcontracti|sub-?stochastic|spectral radius|\bconverge|\bneumann series"),
    (
        "ordered",
        r"\b(?:strictly |monotonically )?increasing\b|\bascending\b|(?<!un)\bsorted\b|monoton",
    ),
    ("unit", r"\bprobabilit|[\[(]0(?:\.0?)?, ?1(?:\.0?)?[\])]|between 0 and 1|\b0 <=? \w+ <=? 1\b"),
    (
        "small",
        r"[\[(]-1(?:\.0?)?, ?1(?:\.0?)?[\])]|between -1 and 1|magnitude below (?:1|one)"
        r"|less than one",
    ),
    (
        "positive",
        r"(?<!semi-)(?<!semi )(?<!non-)(?<!non )\bpositive\b|\bnon-?negative\b|strictly above 0"
        r"|greater than (?:0|zero)",
    ),
    ("above", r"(?:greater|larger) than (?:1|one)\b"),
)


def worded(text: str) -> list[str]:
    """The domains that ``text`` asks for in words, the most special first."""
    lowered = text.lower()
    return [domain for domain, pattern in WORDS if re.search(pattern, lowered)]
