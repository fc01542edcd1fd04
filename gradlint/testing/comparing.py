"""The two verdicts on one call of gradcheck or gradgradcheck: torch's own and gradlint's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch.autograd.gradcheck import GradcheckError

from gradlint.dropin.gradcheck import gradcheck
from gradlint.dropin.gradgradcheck import gradgradcheck
from gradlint.trace.random import generator_states

#: gradlint's function for each name.
DROP_INS: dict[str, Callable[..., bool]] = {"gradcheck": gradcheck, "gradgradcheck": gradgradcheck}

#: Characters of a message that are kept.
_LONGEST = 200


def torchs_verdict(
    original: Callable[..., bool], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[str, str]:
    """How torch's own function ends, and the first line of its message. Inputs, random numbers and
    warnings are afterwards as they were."""
    states = generator_states()
    with _kept([*args, *kwargs.values()]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            original(*args, **{**kwargs, "raise_exception": True})
        except Exception as error:
            return verdict_of(error)
        finally:
            states.restore()
    return "passes", ""


def verdict_of(error: Exception) -> tuple[str, str]:
    """What an exception of either function says."""
    kind = "fails" if isinstance(error, GradcheckError) else f"raises {type(error).__name__}"
    line = next(iter(str(error).strip().splitlines()), "")
    return kind, line[:_LONGEST]


@contextmanager
def _kept(values: Sequence[Any]) -> Iterator[None]:
    """The tensors among ``values``, one level deep, have their numbers back after the body: torch
    leaves them moved where the function raises in between."""
    flat = [one for value in values for one in _parts(value)]
    kept = [(one, one.detach().clone()) for one in flat if isinstance(one, torch.Tensor)]
    try:
        yield
    finally:
        for tensor, before in kept:
            # Some layouts can't be compared or written to; torch does not move their elements.
            with suppress(RuntimeError), torch.no_grad():
                if not torch.equal(tensor, before):
                    tensor.copy_(before)


def _parts(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else [value]
