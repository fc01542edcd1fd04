"""Evidence from docstrings and comments: types in words, shapes such as ``x: (B, C, N)``."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

from gradlint.inputs._annotations import read_annotation_text
from gradlint.inputs._evidence import Evidence

#: Words in brackets that are types or remarks, not axes.
_NO_AXES = frozenset(
    (  # noqa: SIM905
        "tensor float int bool str optional default none true false list tuple longtensor "
        "floattensor torch required callable number array scalar"
    ).split()
)
_AXIS = r"(?:[A-Z][A-Za-z0-9_]{0,9}|[a-z][a-z0-9_]{0,11}|\d{1,2})"
_SHAPE = rf"[\(\[]\s*({_AXIS}(?:\s*,\s*{_AXIS}){{0,5}}\s*,?)\s*[\)\]]"
#: Domains by the words that ask for them, of matrices and rows, which random values never meet.
_DOMAINS = (
    ("nsd", r"negative[- ](?:semi-?)?definite"),
    ("spd", r"positive[- ](?:semi-?)?definite|\bs?psd\b|(?<!non-)(?<!not )\bsymmetric\b"),
    ("tril", r"lower[- ]triangular|\bcholesky factor"),
    ("lengths", r"\bunit[- ](?:vectors?|quaternions?|norm|length)\b"),
)
#: What prose says weighs less than an annotation.
_TOLD = 2.5


def read_docs(things: list[Any], parameters: list[Evidence]) -> None:
    """Add what the docstrings and comments of ``things`` (functions, classes) say."""
    text = "\n".join(_prose(thing) for thing in things if thing is not None)
    if not text:
        return
    for evidence in parameters:
        name = re.escape(evidence.name)
        typed = re.search(
            rf"(?m)^\W*{name}\s*(?:\(([^()\n]*(?:\([^()]*\))?[^()\n]*)\)|:([^\n]*))", text
        )
        if typed:
            words = typed.group(1) or typed.group(2) or ""
            read_annotation_text(evidence, words, _TOLD)
        if not evidence.shape:
            evidence.shape = _shape(name, text)
        if not evidence.domain:
            evidence.domain = _domain(name, text)


def _domain(name: str, text: str) -> str:
    """The domain that the description of a parameter names: ``:param A: a symmetric matrix``,
    ``A (Tensor): …``, or ``A : Tensor`` with the words indented on the next line."""
    found = re.search(
        rf"(?m)^([^\S\n]*)(?:#\s*|[-*]\s*|:param\s+(?:[\w.]+\s+)?)?`*{name}`*\s*(?:\([^()\n]*\))?\s*"
        rf":([^\n]*(?:\n\1[^\S\n]+[^\n]*){{0,2}})",
        text,
    )
    words = " ".join(found.group(2).lower().split()) if found else ""
    return next((domain for domain, needs in _DOMAINS if re.search(needs, words)), "")


def _shape(name: str, text: str) -> tuple[str, ...]:
    for found in re.finditer(
        rf"\b{name}\b\s*(?:\([\w., ]*\))?\s*[:=\-]?[^\n()\[\]]{{0,40}}?{_SHAPE}", text
    ):
        axes = [axis.strip() for axis in found.group(1).split(",") if axis.strip()]
        if any(axis.lower() in _NO_AXES for axis in axes):
            continue
        lone = len(axes) == 1 and not found.group(1).rstrip().endswith(",")
        if lone and not axes[0][0].isupper():
            continue
        if sum(axis.isdigit() for axis in axes) == len(axes):
            continue
        return tuple(f"={axis}" if axis.isdigit() else axis for axis in axes)
    return ()


def _prose(thing: Any) -> str:
    """Docstrings and comments of ``thing``."""
    try:
        source = inspect.getsource(thing)
    except Exception:
        return inspect.getdoc(thing) or ""
    comments = re.findall(r"#\s*(.*)", source)
    try:
        tree = ast.parse(inspect.cleandoc(source))
    except (SyntaxError, ValueError, RecursionError):
        return "\n".join([inspect.getdoc(thing) or "", *comments])
    documents = [
        ast.get_docstring(node) or ""
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    ]
    return "\n".join([*documents, *comments])
