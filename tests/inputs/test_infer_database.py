"""Inference on Functions written by others: PyTorch's own database, and entmax where installed."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradlint.inputs._infer import infer
from gradlint.inputs.not_found import NoInputsFound
from gradlint.targets.build import from_object

database = pytest.importorskip("torch.testing._internal.autograd_function_db")


def functions(module) -> list[type[Function]]:
    return [
        thing
        for thing in vars(module).values()
        if isinstance(thing, type)
        and issubclass(thing, Function)
        and thing.__module__ == module.__name__
    ]


def runs(cls: type[Function]) -> bool:
    """Whether the first inferred sample runs forward and its outputs are finite."""
    try:
        sample = infer(from_object(cls))[0]
    except NoInputsFound:
        return False
    args = [
        item.detach().clone() if isinstance(item, torch.Tensor) else item for item in sample.args
    ]
    outputs = cls.apply(*args)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return all(
        bool(torch.isfinite(item).all())
        for item in outputs
        if isinstance(item, torch.Tensor) and item.is_floating_point()
    )


def test_pytorchs_own_functions():
    found = functions(database)
    failed = [cls.__name__ for cls in found if not runs(cls)]
    assert len(found) >= 12
    assert failed == []


@pytest.mark.parametrize("name", ["activations", "losses", "root_finding"])
def test_entmax(name):
    module = pytest.importorskip(f"entmax.{name}")
    # The base class of the losses has no projection of its own: it can't run.
    found = [cls for cls in functions(module) if not cls.__name__.startswith("_")]
    assert found
    assert [cls.__name__ for cls in found if not runs(cls)] == []
