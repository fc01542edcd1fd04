"""Functions with right and wrong gradients, as a test suite would check them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from gradlint.dropin.failure import InconclusiveWarning


@pytest.fixture(autouse=True)
def _seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADLINT_SEED", "20")
    torch.manual_seed(0)


@pytest.fixture
def conclusive() -> Iterator[None]:
    """A pass that nothing rests on is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", InconclusiveWarning)
        yield


def function(
    forward: Callable[..., Any], backward: Callable[..., Any], **methods: Any
) -> Callable[..., Any]:
    """``apply`` of a Function: ``forward(*args)``, ``backward(saved, *grad_outputs)``."""

    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            ctx.save_for_backward(*args)
            return forward(*args)

    def run(ctx: Any, *grads: Any) -> Any:
        return backward(ctx.saved_tensors, *grads)

    Op.backward = staticmethod(run)
    for name, method in methods.items():
        setattr(Op, name, staticmethod(method))
    return Op.apply


def leaf(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 3) -> torch.Tensor:
    """Normal numbers away from zero, that require grad."""
    generator = torch.Generator().manual_seed(seed)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    drawn = torch.randn(shape, generator=generator, dtype=wide)
    return (drawn + 0.3 * drawn.sgn()).to(dtype).requires_grad_()


square = function(lambda x: x * x, lambda s, g: 2 * s[0] * g)
thrice = function(lambda x: x * x, lambda s, g: 3 * s[0] * g)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Torch's remark on float32 inputs would drown the output; one test expects it."""
    for item in items:
        if "dropin" in item.path.parts:
            item.add_marker(pytest.mark.filterwarnings("ignore:Input #"), append=False)
