"""Nothing in the whitelist makes more than is allowed on its way, whatever it is given."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gradlint.expressions import limits
from gradlint.expressions.compile import compile_expression
from gradlint.expressions.evaluate import evaluate
from gradlint.expressions.limits import ExpressionError
from gradlint.expressions.vocabulary import FUNCTIONS, METHODS

#: The limit while these tests run, and how far intermediates of one operation may exceed it.
LIMIT, SLACK = 4096, 2

ENV: dict[str, Any] = {
    "x": torch.rand(16, 16, dtype=torch.float64),
    "b": torch.rand(2, 16, 16, dtype=torch.float64),
    "c": torch.rand(64, 1, dtype=torch.float64),
    "i": torch.arange(16),
    "n": 5000,
}
ATOMS = ["x", "b", "c", "c.T", "i", "n", "0", "(n,)", "(n, n)", "[n, n]", "[x, x]"]


class Largest(TorchDispatchMode):
    """The largest memory, in elements, that an operation made while this was active."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        given = {_memory(arg) for arg in args}
        result = func(*args, **(kwargs or {}))
        for made in result if isinstance(result, (tuple, list)) else [result]:
            memory = _memory(made)
            if memory is not None and memory not in given:
                self.elements = max(self.elements, memory[1] // made.element_size())
        return result


def _memory(value: Any) -> tuple[int, int] | None:
    if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
        return None
    storage = value.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


#: The atoms as values: what is written between the brackets is checked when it is compiled, the
#: same for every function, and only what it stands for can grow.
VALUES = [evaluate(compile_expression(atom, ENV), ENV) for atom in ATOMS]


@pytest.mark.parametrize("name", [*sorted(FUNCTIONS), *(f".{name}" for name in sorted(METHODS))])
def test_nothing_grows_beyond_the_limit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_ELEMENTS", LIMIT)
    largest = Largest()
    with warnings.catch_warnings(), largest:
        warnings.simplefilter("ignore")
        for names in ("p", "pq"):
            first, *rest = names
            others = ", ".join(rest)
            text = f"({first}){name}({others})" if name[0] == "." else f"{name}({first}, {others})"
            with contextlib.suppress(ExpressionError):
                expression = compile_expression(text, names)
                for chosen in itertools.product(range(len(ATOMS)), repeat=len(names)):
                    given = {word: VALUES[at] for word, at in zip(names, chosen, strict=True)}
                    largest.elements = 0
                    with contextlib.suppress(ExpressionError):
                        evaluate(expression, given)
                    assert largest.elements <= SLACK * LIMIT, [text, [ATOMS[at] for at in chosen]]
