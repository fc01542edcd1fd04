"""What an exported program returns can be compared only where it has values."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from gradlint.rules.transforms.wrong_when_exported import _require_values


class Labelled(torch.Tensor):
    """A subclass with values of its own."""


def test_a_tensor_that_holds_what_was_traced_is_refused():
    with FakeTensorMode():
        fake = torch.empty(3)
    with pytest.raises(DataDependentOutputException):
        _require_values([fake])


def test_tensors_with_values_are_not():
    _require_values([torch.ones(3), torch.ones(3).as_subclass(Labelled), None])
