"""Functions that an op replaces: which, whether it is to blame for an error, and putting back."""

from __future__ import annotations

import json
import sys
import types

import pytest
import torch

from gradlint.trace import originals as _originals
from gradlint.trace.originals import Originals, of_torch, put_back, watched_functions


@pytest.fixture(autouse=True)
def _forgetful():
    of_torch.cache_clear()
    yield
    put_back()
    _originals._meddled.clear()
    of_torch.cache_clear()


def mimic(*args):
    raise AssertionError


@pytest.fixture
def kept(monkeypatch):
    """torch's functions as they are; replaced ones come back after the test."""
    found = Originals([torch, torch.Tensor, json])
    yield found
    for replacement in found.replaced():
        replacement.put_back()


@pytest.mark.parametrize(
    ("holder", "name", "value", "told"),
    [
        (torch, "randn", None, "torch.randn"),
        (torch, "equal", mimic, "torch.equal"),
        (torch, "zeros", torch.ones, "torch.zeros"),
        (torch.Tensor, "abs", None, "torch.Tensor.abs"),  # hides an inherited one
        (torch.Tensor, "backward", mimic, "torch.Tensor.backward"),
        (json, "dumps", mimic, "json.dumps"),
    ],
)
def test_what_is_replaced_is_named_and_put_back(kept, holder, name, value, told):
    original = getattr(holder, name)
    setattr(holder, name, value)
    (found,) = kept.replaced()
    assert str(found) == told
    found.put_back()
    found.put_back()  # once more does no harm
    assert getattr(holder, name) == original
    assert kept.replaced() == []


def test_what_is_added_or_no_function_or_by_torch_is_not_told(kept, monkeypatch):
    monkeypatch.setattr(torch, "of_a_library", mimic, raising=False)
    monkeypatch.setattr(torch.Tensor, "of_a_library", mimic, raising=False)
    monkeypatch.setattr(torch, "pi", 3)
    monkeypatch.setattr(torch, "manual_seed", torch.seed)  # as importing torch._dynamo wraps it
    assert kept.replaced() == []


def raised(function):
    with pytest.raises(TypeError) as caught:
        function()
    return caught.value


def test_blame_needs_a_call_by_that_name(kept):
    torch.randn = None
    error = raised(lambda: torch.randn(3))
    other = raised(lambda: 1 + "")
    assert kept.blamed(other) == []
    assert torch.randn is None
    assert kept.blamed(error) == ["torch.randn"]
    assert torch.randn(3).shape == (3,)


def test_blame_goes_through_causes(kept):
    torch.randn = None

    def body():
        try:
            torch.randn(3)
        except TypeError as error:
            raise TypeError("of another kind") from error

    assert kept.blamed(raised(body)) == ["torch.randn"]


def test_a_package_taken_out_stands_for_its_modules(monkeypatch):
    names = ["gradlint_", "gradlint", "gradlint.a", "gradlint.a.b"]
    modules = [types.ModuleType(name) for name in names]
    for module in modules:
        monkeypatch.setitem(sys.modules, module.__name__, module)
    kept = Originals(modules)
    assert kept.blamed(ValueError()) == []
    for name in names:
        del sys.modules[name]
    assert kept.blamed(ValueError()) == ["gradlint"]
    assert sys.modules["gradlint.a.b"] is modules[-1]
    assert "gradlint_" not in sys.modules


def test_what_is_replaced_at_every_call_is_told_and_put_back_from_then_on():
    original = of_torch() and torch.equal
    for _ in range(2):
        with watched_functions() as found:
            torch.equal = mimic
        assert found == ["torch.equal"]
        assert torch.equal is original
    torch.equal = mimic
    put_back()
    assert torch.equal is original


def test_what_a_library_replaced_by_its_import_stays():
    original = of_torch() and torch.equal
    torch.equal = mimic
    try:
        with watched_functions() as found:
            assert torch.equal is original
        assert found == []
        assert torch.equal is mimic
    finally:
        torch.equal = original
