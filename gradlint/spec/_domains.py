"""Domains: where an op is defined, by name or as an interval, and values drawn from them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from gradlint.inputs.domains import DOMAINS

#: Name in a spec → (interval or None, how it reads in a report).
NAMES: dict[str, tuple[tuple[float, float] | None, str]] = {
    "reals": (None, "all reals"),
    "positive": (None, "positive"),
    "nonnegative": ((0.0, math.inf), "nonnegative"),
    "negative": (None, "negative"),
    "nonpositive": ((-math.inf, 0.0), "nonpositive"),
    "nonzero": (None, "nonzero"),
    "unit": (None, "between 0 and 1"),
    "open unit": (None, "between 0 and 1"),
    "probability": (None, "rows sum to 1"),
    "spd": (None, "symmetric positive definite"),
    "unit vectors": (None, "unit vectors along the last axis"),
    "increasing": (None, "increasing along the last axis"),
}
#: Words of reports and other spellings → name in a spec.
ALIASES = {
    "all reals": "reals",
    "real": "reals",
    "any": "reals",
    "non-negative": "nonnegative",
    "non-positive": "nonpositive",
    "non-zero": "nonzero",
    "between 0 and 1": "unit",
    "between -1 and 1": "[-1, 1]",
    "above 1": "(1, inf)",
    "open-unit": "open unit",
    "rows sum to 1": "probability",
    "simplex": "probability",
    "symmetric positive definite": "spd",
    "unit vectors along the last axis": "unit vectors",
    "increasing along the last axis": "increasing",
}
#: Words of a report → inference's name of the domain, so that a spec can say all that it finds.
INFERRED = {words.lower(): name for name, words in DOMAINS.items()}
#: The largest finite end of an interval: values move by a share of their size, and that of those
#: near the end of float64, 1.8e308, leads beyond it.
LARGEST_END = 1e300

_END = r"\s*[-+]?(?:inf(?:inity)?|\.inf|[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*"
_INTERVAL = re.compile(rf"^\s*([\[(])({_END}),({_END})([\])])\s*$")


@dataclass(frozen=True)
class Domain:
    """Where values may lie.

    Args:
        name: one of :data:`NAMES`, or "interval".
        low, high: ends of an interval; infinite ends are open.
        words: how it reads in a report.
    """

    name: str
    words: str
    low: float = -math.inf
    high: float = math.inf


def parse_domain(value: Any) -> Domain:
    """The domain that a spec names: a name, words of a report, "[lo, hi]" or a list of two.

    Raises:
        ValueError: there is no such domain; the text says so.
    """
    if isinstance(value, list):
        numbers = [v for v in value if isinstance(v, (int, float)) and not isinstance(v, bool)]
        if len(value) != 2 or len(numbers) != 2:
            raise ValueError("an interval has two numbers: [lo, hi]")
        if any(isinstance(v, int) and abs(v) > LARGEST_END for v in numbers):
            raise ValueError(f"the ends of an interval lie within ±{LARGEST_END:g}")
        return _interval(float(numbers[0]), float(numbers[1]), "[", "]")
    if not isinstance(value, str):
        raise ValueError(f"a domain is a name or an interval, not {value!r}")
    text = " ".join(value.split())
    text = ALIASES.get(text.lower(), text)
    lowered = text.lower().replace("_", " ")
    if lowered in NAMES:
        interval, words = NAMES[lowered]
        low, high = interval or (-math.inf, math.inf)
        return Domain(lowered, words, low, high)
    if lowered in INFERRED:
        return Domain(lowered, lowered)
    matched = _INTERVAL.match(text)
    if matched:
        left, low_text, high_text, right = matched.groups()
        try:
            ends = [float(end.replace(".inf", "inf")) for end in (low_text, high_text)]
        except ValueError:
            ends = []
        if ends:
            return _interval(ends[0], ends[1], left, right)
    raise ValueError(f"unknown domain `{value[:40]}`")


def _interval(low: float, high: float, left: str, right: str) -> Domain:
    if math.isnan(low) or math.isnan(high) or low >= high:
        raise ValueError("an interval goes from its smaller to its larger end")
    if any(math.isfinite(end) and abs(end) > LARGEST_END for end in (low, high)):
        raise ValueError(f"the ends of an interval lie within ±{LARGEST_END:g}, or are infinite")
    if (low, high) == (0.0, 1.0):
        return Domain("unit", NAMES["unit"][1], low, high)
    if (low, high) == (-1.0, 1.0):
        return Domain("interval", "between -1 and 1", low, high)
    if (low, high) == (1.0, math.inf):
        return Domain("interval", "above 1", low, high)
    if (low, high) == (0.0, math.inf):
        name = "positive" if left == "(" else "nonnegative"
        return Domain(name, NAMES[name][1], low, high)
    left = "(" if math.isinf(low) else left
    right = ")" if math.isinf(high) else right
    return Domain("interval", f"in {left}{low:g}, {high:g}{right}", low, high)
