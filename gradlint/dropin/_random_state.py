"""Common random numbers: every call of a stochastic function draws the same ones."""

from __future__ import annotations

import random
import sys
from typing import Any

import torch


class RandomState:
    """The random generators as they were when this was made, and whether a call has drawn.

    Replaying them makes a function with dropout one fixed function of its inputs. The caller's
    generators end where a single call would have left them.
    """

    def __init__(self, *, cuda: bool) -> None:
        self._cuda = cuda
        self._start = self._read()
        self._end: list[Any] | None = None
        self._reseeded = False

    @property
    def drawn(self) -> bool:
        """Whether the first call drew random numbers."""
        return self._end is not None

    def after_first_call(self) -> None:
        """Notice whether a call has drawn."""
        now = self._read()
        if not all(_same(a, b) for a, b in zip(self._start, now, strict=True)):
            self._end = now

    def replay(self) -> None:
        """Put the generators back to the start, if calls draw from them."""
        if self.drawn:
            self._write(self._start)

    def reseeded(self) -> None:
        """Say that others seed the generators from here on."""
        self._reseeded = True

    def finish(self) -> None:
        """Leave the generators where one call leaves them."""
        if self._end is not None or self._reseeded:
            self._write(self._start if self._end is None else self._end)

    def _read(self) -> list[Any]:
        numpy = sys.modules.get("numpy")
        return [
            torch.default_generator.get_state(),
            random.getstate(),
            numpy.random.get_state(legacy=False) if numpy is not None else None,
            torch.cuda.get_rng_state_all() if self._cuda else None,
        ]

    def _write(self, state: list[Any]) -> None:
        torch.default_generator.set_state(state[0])
        random.setstate(state[1])
        numpy = sys.modules.get("numpy")
        if numpy is not None and state[2] is not None:
            numpy.random.set_state(state[2])
        if self._cuda:
            torch.cuda.set_rng_state_all(state[3])


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, list):
        return all(_same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):  # numpy's: keys and position inside "state", and a cached normal
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    same = a == b
    return bool(same.all() if hasattr(same, "all") else same)
