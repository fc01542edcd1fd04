"""Whether an op is meant for odd sizes, too.

Forward often takes an odd size by accident where it needs two halves. It is meant where the
documentation speaks of any size or of odd ones, and where the code treats odd and even sizes apart,
counts with the remainder of a size, as padding does, or passes a length to an inverse real
transform: that is needed for nothing else, since the length of a real signal can't be told from
that of its spectrum.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator

from gradlint.experiments.layout.meant_broadcasting import parts_of, text_of
from gradlint.experiments.subject import Subject
from gradlint.inputs.documentation import prose

#: Documentation that allows every size, or names odd ones, and does not deny them.
_SAID = re.compile(
    r"(?i)\bany (?:\w+ )?(?:n|t|l|length|size|number|shape|\w >= 1)\b|\bodd (?:or|and) even\b"
    r"|\beven (?:or|and) odd\b"
    r"|\bodd (?:n|lengths?|sizes?|sides?|widths?|heights?|dim(?:ension)?s?|axes|inputs?)"
    r" (?:(?:are|is)(?! (?:not|no|refused|forbidden|unsupported))|work|too|allowed)"
)

#: A length for an inverse real transform, or a size compared by its remainder of two.
_HANDLED = re.compile(r"\b(?:irfft\w*|hfft\w*)\((?:[^\n]*[,(])?\s*[ns]\s*=|[%&]\s*[21]\s*[=!]=")

#: Code that halves a size, or an axis.
_HALVES = re.compile(r"//\s*2\b|>>\s*1\b|\bchunk\([^)\n]*\b2\b|\btensor_split")

#: An expression that is a size, or several.
_SIZES = re.compile(r"\.shape\b|\.size\(|\blen\(|\.numel\(")


def odd_sizes_are_meant(subject: Subject) -> bool:
    """Whether documentation or code say that odd sizes are meant."""
    parts = parts_of(subject)
    said = any(_SAID.search(prose(part)) for part in parts)
    texts = [text_of(part) for part in parts]
    return said or any(_HANDLED.search(text) or _uses_remainders(text) for text in texts)


def splits_in_halves(subject: Subject) -> bool:
    """Whether code takes half of something, as an op must that needs two halves."""
    return any(_HALVES.search(text_of(part)) for part in parts_of(subject))


def _uses_remainders(text: str) -> bool:
    """Whether code does something with the remainder of a size by two, other than to refuse it."""
    try:
        tree = ast.parse(textwrap.dedent(text))
    except SyntaxError:
        return False
    sizes = {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _SIZES.search(ast.unparse(node.value))
        for target in node.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    }
    refused = {id(part) for test in _refusals(tree) for part in ast.walk(test)}
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mod)
        and isinstance(node.right, ast.Constant)
        and node.right.value == 2
        and (
            _SIZES.search(ast.unparse(node.left))
            or (isinstance(node.left, ast.Name) and node.left.id in sizes)
        )
        and id(node) not in refused
        for node in ast.walk(tree)
    )


def _refusals(tree: ast.AST) -> Iterator[ast.expr]:
    """The conditions of assertions, and of branches that raise."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) or (
            isinstance(node, ast.If) and any(isinstance(each, ast.Raise) for each in node.body)
        ):
            yield node.test
