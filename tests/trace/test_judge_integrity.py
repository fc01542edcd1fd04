"""What judges is compared with what it was: replaced, removed, other code, other constants."""

from __future__ import annotations

import builtins
import functools
import math
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

from gradlint.trace.judge_integrity import Judge

SOURCE = """
import functools
TOLERATED = {53: 1e-9}
LIMIT = 6.5
def judge(x, bar=1.0): return x < bar
def bounded(x, *, bar=1.0): return x < bar
@functools.lru_cache
def cached(x): return x
class Bank:
    size = 3
    def __init__(self): self.pairs = []
    @staticmethod
    def draw(): return 1
    @property
    def found(self): return 2
"""


@pytest.fixture
def module() -> types.ModuleType:
    made = types.ModuleType("judging")
    exec(SOURCE, vars(made))
    return made


def _replace_code(module: Any) -> None:
    def judge(x: float, bar: float = 1.0) -> bool:
        return True

    module.judge.__code__ = judge.__code__


#: What is done to the module → what is named.
CHANGES: dict[str, Callable[[Any], Any]] = {
    "judging.judge": lambda module: setattr(module, "judge", lambda x: True),
    "judging.cached": lambda module: delattr(module, "cached"),
    "judging.Bank": lambda module: setattr(module, "Bank", object),
    "judging.Bank.__init__": lambda module: setattr(module.Bank, "__init__", lambda self: None),
    "judging.Bank.draw": lambda module: setattr(module.Bank, "draw", staticmethod(lambda: 0)),
    "judging.Bank.found": lambda module: setattr(module.Bank, "found", 0),
    "judging.TOLERATED": lambda module: module.TOLERATED.update({53: 1e30}),
    "judging.abs": lambda module: setattr(module, "abs", lambda x: 0.0),
    "judging.Bank.__getattribute__": lambda module: setattr(
        module.Bank, "__getattribute__", lambda self, name: 0
    ),
    "judging.Bank.__eq__": lambda module: setattr(module.Bank, "__eq__", lambda *_: True),
    "judging.LIMIT": lambda module: setattr(module, "LIMIT", 1e30),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changed_is_named(module: types.ModuleType, name: str) -> None:
    kept = Judge([module])
    assert kept.changed() == []
    CHANGES[name](module)
    assert name in kept.changed()


@pytest.mark.parametrize("change", ["code", "defaults", "wrapped"])
def test_a_function_that_stays_and_does_something_else(
    module: types.ModuleType, change: str
) -> None:
    kept = Judge([module])
    if change == "code":
        _replace_code(module)
    elif change == "defaults":
        module.judge.__defaults__ = (1e30,)
    else:
        module.cached.__wrapped__.__code__ = (lambda x: 0).__code__
    assert kept.changed() == ["judging.cached" if change == "wrapped" else "judging.judge"]


def test_an_attribute_hides_no_code(module: types.ModuleType) -> None:
    """``__wrapped__``, by which the function in a cache is found, is there for all to set."""
    kept = Judge([module])
    judge = module.judge
    judge.__wrapped__ = types.FunctionType(judge.__code__, {}, argdefs=judge.__defaults__)
    _replace_code(module)
    assert kept.changed() == ["judging.judge"]


def test_a_keyword_is_given_another_default(module: types.ModuleType) -> None:
    kept = Judge([module])
    module.bounded.__kwdefaults__["bar"] = 1e30
    assert kept.changed() == ["judging.bounded"]


@pytest.mark.parametrize(
    ("holder", "name", "full"),
    [
        (torch.autograd, "grad", "torch.autograd.grad"),
        (torch.Tensor, "__sub__", "torch.Tensor.__sub__"),
        (torch.Tensor, "backward", "torch.Tensor.backward"),
        (torch.Tensor, "requires_grad_", "torch.Tensor.requires_grad_"),
        (torch.no_grad, "__exit__", "torch.autograd.grad_mode.no_grad.__exit__"),
        (builtins, "round", "builtins.round"),
        (math, "sqrt", "math.sqrt"),
    ],
)
def test_torch(monkeypatch: pytest.MonkeyPatch, holder: Any, name: str, full: str) -> None:
    kept = Judge([])
    with monkeypatch.context() as patch:
        patch.setattr(holder, name, lambda *_: None)
        assert kept.changed() == [full]
    assert kept.changed() == []


@pytest.mark.filterwarnings("ignore:.*overrid")
def test_kernels_of_the_dispatcher() -> None:
    kept = Judge([])
    library = torch.library.Library("aten", "IMPL")
    # Neither operators that gradlint does not compute with, nor other kinds of device.
    library.impl("erfinv", lambda x: x, "CPU")
    library.impl("sub.Tensor", lambda a, b, *, alpha=1: a, "XLA")
    assert kept.changed() == []
    library.impl("sub.Tensor", lambda a, b, *, alpha=1: a, "CPU")
    assert kept.changed() == ["aten::sub.Tensor"]
    library._destroy()
    assert kept.changed() == []


def test_what_may_change_is_not_named(
    module: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """State of the module's own, attributes of its objects, what libraries wrap of torch and of
    Python, and names that hide nothing."""
    kept = Judge([module])
    module.state = 1  # type: ignore[attr-defined]
    module.Bank().pairs.append(1)
    module.Bank.total = 0  # type: ignore[attr-defined]
    module.open = types.ModuleType("judging.open")  # type: ignore[attr-defined]
    monkeypatch.setattr(builtins, "print", lambda *_: None)
    monkeypatch.setattr(builtins, "ic", print, raising=False)
    module.cached(3)
    monkeypatch.setattr(torch, "randn", functools.partial(torch.randn))
    monkeypatch.setattr(torch.Tensor, "__repr__", lambda self, **_: "tensor")
    assert kept.changed() == []
