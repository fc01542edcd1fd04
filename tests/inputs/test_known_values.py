"""Values of arguments that an op was written for, and those that it takes by accident."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gradlint.inputs.known_values import is_known
from gradlint.targets.build import from_object


def scaled(x, weight=None, count=1, power=2, stride=1, mode="a", rate=0.5, keepdim=False):
    """Scale x at the given rate."""
    if power == 3:
        return x**3
    return x * count


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [
        ("weight", torch.ones(3), True),
        ("weight", None, True),
        ("keepdim", True, True),
        ("mode", "b", True),
        ("stride", 2, True),
        ("rate", 1.75, True),  # documented
        ("power", 3, True),  # compared with
        ("power", 4, False),
        ("count", 2, False),
    ],
)
def test_what_an_op_was_written_for(name: str, value: Any, known: bool) -> None:
    assert is_known(from_object(scaled), name, value) == known
