"""Whether an op was written for a value that gradlint chose for an argument."""

from __future__ import annotations

import re
from typing import Any

import torch

from gradlint.inputs._gather import gather
from gradlint.inputs.designed_arguments import is_written_for
from gradlint.inputs.documentation import prose
from gradlint.model.op import Op


def is_known(op: Op, name: str, value: Any) -> bool:
    """Whether the code or the documentation of ``op`` shows that the argument ``name`` may be
    ``value``: an optional tensor that is given, a flag, a name, what a window is given, a number
    that the code compares with, or any value of an argument that the documentation names."""
    if value is None or isinstance(value, torch.Tensor) or is_written_for({name: value}):
        return True
    said = prose(op.defining) if op.defining is not None else ""
    if re.search(rf"\b{re.escape(name)}\b", said):
        return True
    known = next((item.values for item in gather(op) if item.name == name), [])
    return any(repr(value) == repr(one) for one in known)
