"""Triton's interpreter, which runs kernels on the CPU: whether it does, and which kernels ran.

It differs from compiled kernels in one point that matters here: the number of a loop is a number of
Python's, which becomes 32 bits wide in a product with a stride, where compiled code gives it the
width of the loop's bounds.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def triton_interprets() -> bool:
    """Whether Triton is loaded and runs its kernels on the CPU."""
    return "triton" in sys.modules and os.environ.get("TRITON_INTERPRET") == "1"


def raised_by_interpreter(error: BaseException) -> bool:
    """Whether ``error``, or what it was raised from, was raised while Triton ran a kernel on the
    CPU: no kernel runs there on the tensors without memory with which compilers trace."""
    seen: set[int] = set()
    current: BaseException | None = error if triton_interprets() else None
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        frames = traceback.walk_tb(current.__traceback__)
        if any(frame.f_globals.get("__name__", "").startswith("triton.") for frame, _ in frames):
            return True
        current = current.__cause__ or current.__context__
    return False


@contextmanager
def kernels_that_run() -> Iterator[list[Callable[..., Any]] | None]:
    """The functions that the interpreter runs in the body, as the user wrote them; None where this
    version of Triton does not tell."""
    interpreter = sys.modules.get("triton.runtime.interpreter")
    kind: Any = getattr(interpreter, "InterpretedFunction", None)
    before = getattr(kind, "rewrite", None)
    if before is None:
        yield None
        return
    ran: list[Callable[..., Any]] = []

    def rewrite(self: Any) -> Any:
        ran.append(self.fn)
        return before(self)

    kind.rewrite = rewrite
    try:
        yield ran
    finally:
        kind.rewrite = before


def has_loop(kernel: Callable[..., Any]) -> bool:
    """Whether ``kernel`` has a loop, as far as known; Triton's own functions do not count."""
    if (getattr(kernel, "__module__", None) or "").partition(".")[0] == "triton":
        return False
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kernel)))
    except (OSError, TypeError, SyntaxError):
        return True
    return any(isinstance(node, (ast.For, ast.While)) for node in ast.walk(tree))
