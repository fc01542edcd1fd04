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
    "corners": "boxes: the lower corner, then the upper one",
}

#: Domain → how a report describes it, of those that are only tried where a gradient is wrong at
#: other values, or where documentation asks for them. "lower" and "upper" are triangular matrices
#: that stay so when they are moved.
CONFINED = {
    "skew": "skew-symmetric",
    "dominant": "matrices of positive determinant",
    "lower": "lower triangular",
    "upper": "upper triangular",
    "signs": "-1 or 1",
    "binary": "0 or 1",
    "ball": "vectors of length below 1 along the last axis",
    "shares": "logarithms of rows that sum to less than 1",
    "alike": "positive, none as large as two others together",
}

#: Domains of square matrices.
OF_SQUARES = frozenset(
    {
        *("spd", "nsd", "tril", "triu", "orthogonal", "contraction", "skew", "lower", "upper"),
        "dominant",
    }
)

#: Domains that hold others, for which a name or the documentation may ask: a definite matrix has a
#: positive determinant.
WEAK = frozenset({"dominant"})

#: Domain → words of error texts, docstrings and comments that ask for it, the most special first.
WORDS = (
    (
        "corners",
        r"\bxyxy\b|\bx_?(?:1|min)[, ]+y_?(?:1|min)[, ]+(?:z_?(?:1|min)[, ]+)?x_?(?:2|max)\b",
    ),
    (
        "dominant",
        r"\bpositive determinant|\bdet(?:\w*| \w+|\(\w+\)) ?> ?0\b|\bdeformation gradient",
    ),
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
        "ball",
        r"\b(?:in|inside|within|of|on|from) (?:the|an?) (?:open )?(?:unit|poincar[eé])[- ]"
        r"(?:ball|dis[ck])\b|\bnorms? (?:is |are )?(?:strictly )?"
        r"(?:(?:below|under|less than|smaller than) (?:1|one)\b(?!\.)|< ?1\b(?!\.))"
        r"|(?:\|\||‖)\w+(?:\|\||‖) ?< ?1\b(?!\.)",
    ),
    (
        "rows",
        r"\bsum(?:s|med|ming)? (?:up )?to (?:1|one)\b|\bstochastic matri|row-stochastic|\bsimplex\b"
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
        r"(?<!semi-)(?<!semi )(?<!non-)(?<!non )\bpositive\b|\bnon-?negative\b|\bnot negative\b"
        r"|strictly above 0"
        r"|greater than (?:0|zero)",
    ),
    ("above", r"(?:greater|larger) than (?:1|one)\b"),
)

#: Quantities that are positive by their meaning, where an argument is described as one: "(P,)
#: distances between atoms". Other words before them may change that: "signed distances".
_QUANTITIES = re.compile(
    r"[_ :]*(?:[(\[][^)\]]*[)\]][ ,:]*|tensor[ ,]*|(?:the|of|all|each|input|edge|pair(?:wise)?"
    r"|interatomic|euclidean|bond|spot|strike|option|asset|stock|implied|annual(?:i[sz]ed)?"
    r"|absolute|particle|atomic|point|kernel|half|per-\w+) )*"
    r"(?:distances?|radii|radius|mass(?:es)?|prices?|volatilit(?:y|ies)|variances?|bandwidths?"
    r"|standard deviations?|half-li(?:fe|ves)|wavelengths?|concentrations?|maturit(?:y|ies)"
    r"|temperatures?|pressures?|densit(?:y|ies)|gaps?|half-?widths?"
    r"|length ?scales?|permeabilit(?:y|ies))\b"
)


def of_quantity(words: str) -> str:
    """The domain of an argument that ``words`` describe as a quantity: "positive", or "" where they
    name none."""
    return "positive" if _QUANTITIES.match(words.lower()) else ""


def worded(text: str) -> list[str]:
    """The domains that ``text`` asks for in words, the most special first."""
    lowered = text.lower()
    return [domain for domain, pattern in WORDS if re.search(pattern, lowered)]


#: Names of what is never zero: prices, times that are left, masses, widths and other parameters of
#: distributions.
QUANTITIES = (
    *("sigma", "spot", "strike", "expiry", "maturity", "vol", "volatility"),
    *("mass", "masses", "radius", "radii"),
    *("disp", "dispersion", "concentration", "lengthscale", "length_scale", "bandwidth", "bw"),
    *("temperature", "half_life", "wavelength"),
)


def is_quantity(name: str) -> bool:
    """Whether an input of this name is never zero."""
    return name.strip("_").casefold().rstrip("0123456789").rstrip("_") in QUANTITIES
