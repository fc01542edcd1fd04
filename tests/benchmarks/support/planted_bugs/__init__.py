"""Bugs in the manner of those that people ship, each with its fix, a module a family.

A :class:`Bug` is two operators: one that is wrong in exactly one way, and its twin in which that
way is put right. The code of the bug must be found in the first, and nothing in the second.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Bug:
    """A planted bug.

    Args:
        name: short, unique, in words: "reads grad_output as contiguous".
        code: the rule that must find it.
        faulty, fixed: ``torch.autograd.Function`` classes, modules, or callables.
        inputs: gives one tuple of arguments, fresh; tensors that require grad are differentiable.
        like: what it is modelled on: a class of bug, or a public report (``owner/repo#1``).
        also: other codes that may rightly be found beside it.
        dtypes: dtypes asked for, where it does not show in float64.
    """

    name: str
    code: str
    faulty: Any
    fixed: Any
    inputs: Callable[[], tuple[Any, ...]]
    like: str
    also: tuple[str, ...] = ()
    dtypes: tuple[str, ...] | None = None


def all_bugs() -> list[Bug]:
    """The bugs of every module here, by code."""
    found: list[Bug] = []
    for module in pkgutil.iter_modules(__path__):
        found += importlib.import_module(f"{__name__}.{module.name}").BUGS
    return sorted(found, key=lambda bug: bug.code)
