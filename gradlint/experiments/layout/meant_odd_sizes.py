"""Whether an op is meant for odd sizes, too.

Forward often takes an odd size by accident where it needs two halves. It is meant where the
documentation speaks of any size or of odd ones, and where the code treats odd and even sizes apart,
or passes a length to an inverse real transform: that is needed for nothing else, since the length
of a real signal can't be told from that of its spectrum.
"""

from __future__ import annotations

import re

from gradlint.experiments.layout.meant_broadcasting import parts_of, text_of
from gradlint.experiments.subject import Subject
from gradlint.inputs.documentation import prose

#: Documentation that allows every size, or names odd ones, and does not deny them.
_SAID = re.compile(
    r"(?i)\bany (?:\w+ )?(?:n|t|l|length|size|number|shape|\w >= 1)\b|\bodd (?:or|and) even\b"
    r"|\beven (?:or|and) odd\b|\bodd (?:n|lengths?|sizes?) (?:are|is|work|too|allowed)"
)

#: A length for an inverse real transform, or a size compared by its remainder of two.
_HANDLED = re.compile(r"\b(?:irfft\w*|hfft\w*)\((?:[^\n]*[,(])?\s*[ns]\s*=|[%&]\s*[21]\s*[=!]=")


def odd_sizes_are_meant(subject: Subject) -> bool:
    """Whether documentation or code say that odd sizes are meant."""
    parts = parts_of(subject)
    said = any(_SAID.search(prose(part)) for part in parts)
    return said or any(_HANDLED.search(text_of(part)) for part in parts)
