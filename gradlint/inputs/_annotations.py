"""Evidence from annotations, defaults and names."""

from __future__ import annotations

import enum
import inspect
import re
from typing import Any

from gradlint.inputs import _names
from gradlint.inputs._evidence import MISSING, Evidence

#: An annotation is what the author says, but authors annotate `float` and pass tensors.
_STATED = 6.0


def read_annotation(evidence: Evidence, annotation: Any) -> None:
    """Add what ``annotation`` (an object or its text) says."""
    if annotation is inspect.Parameter.empty or annotation is None:
        return
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        for member in annotation:
            evidence.suggest(member)
        evidence.say("value", _STATED)
        return
    axes = getattr(annotation, "dim_str", None)
    if isinstance(axes, str):
        evidence.shape = tuple(axis for axis in axes.split() if re.fullmatch(r"\w+", axis))
    text = annotation if isinstance(annotation, str) else _text(annotation)
    read_annotation_text(evidence, text)
    if isinstance(annotation, type) and annotation.__module__ not in ("builtins", "torch"):
        evidence.classes.append(annotation)


def _text(annotation: Any) -> str:
    try:
        return inspect.formatannotation(annotation)
    except Exception:
        return ""


def read_annotation_text(evidence: Evidence, text: str, weight: float = _STATED) -> None:
    """Add what the text of an annotation says, e.g. ``Optional[torch.Tensor]``."""
    if not text:
        return
    literal = re.search(r"Literal\[([^\]]*)\]", text)
    if literal:
        for value in re.findall(r"'([^']*)'|\"([^\"]*)\"", literal.group(1)):
            evidence.suggest(value[0] or value[1])
        evidence.say("str", weight)
        return
    if re.search(r"Optional|\bNone\b", text):
        evidence.optional = True
    sequence = re.search(r"(?i)\b(list|sequence|tuple|iterable|collection)\b\s*\[([^\]]*)\]", text)
    if sequence and re.search(r"Tensor|Parameter|Variable", sequence.group(2)):
        evidence.say("tensors", weight)
        parts = [part for part in sequence.group(2).split(",") if part.strip()]
        if sequence.group(1).lower() == "tuple" and "..." not in sequence.group(2):
            evidence.length = len(parts)
        return
    if re.search(r"(?i)\bdict\b|Mapping", text):
        evidence.say("dict", weight)
        evidence.of_tensors = "Tensor" in text
        return
    if sequence and re.search(r"\bint\b", sequence.group(2)):
        evidence.say("shape", weight if not re.search(r"Union|\|", text) else weight - 1)
        parts = [part for part in sequence.group(2).split(",") if part.strip()]
        if sequence.group(1).lower() == "tuple" and "..." not in sequence.group(2):
            evidence.length = len(parts)
    plain = text.replace(sequence.group(0), "") if sequence else text
    found = 0
    for pattern, kind in (
        (r"LongTensor|IntTensor|Int(64|32|eger)?\[", "index"),
        (r"BoolTensor|ByteTensor|Bool\[", "mask"),
        (r"Complex\w*\[", "complex"),
        (r"(?<!Long)(?<!Int)(?<!Bool)(?<!Byte)Tensor\b|\bParameter\b|\bVariable\b", "any"),
        (r"\bbool\b", "bool"),
        (r"\bint\b|SymInt", "int"),
        (r"\bfloat\b|\bNumber\b|\bScalar\b", "float"),
        (r"\bstr\b", "str"),
        (r"\b[Tt]uple\b|\bSize\b", "shape"),
        (r"Callable", "callable"),
        (r"\bModule\b", "module"),
        (r"\bdtype\b", "dtype"),
        (r"\bdevice\b", "device"),
        (r"ProcessGroup|Generator", "none"),
    ):
        if kind == "any" and {"index", "mask", "complex"} & set(evidence.weights) and found:
            continue
        if kind == "shape" and sequence:
            continue
        if re.search(pattern, plain):
            evidence.say(kind, weight - 0.6 * found)
            found += 1


def read_default(evidence: Evidence) -> None:
    """Add what the default says: its type, and whether None is allowed."""
    default = evidence.default
    if default is MISSING:
        return
    if default is None:
        evidence.optional = True
        return
    for kind, types in (
        ("bool", bool),
        ("int", int),
        ("float", float),
        ("str", str),
        ("shape", tuple),
        ("dict", dict),
    ):
        if isinstance(default, types):
            evidence.say(kind, 5.0)
            break
    else:
        evidence.say("callable" if callable(default) else "value", 4.0)
    evidence.suggest(default, first=True)


def read_name(evidence: Evidence) -> None:
    """Add what the name says."""
    for kind, weight in _names.kinds(evidence.name).items():
        evidence.say(kind, weight)
    for position, rank in enumerate(_names.ranks(evidence.name)):
        evidence.rank(rank, 1.5 - 0.4 * position)
