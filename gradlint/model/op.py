"""What a target resolves to: a reference that a worker can load, and the loaded operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gradlint.model.report import Location

if TYPE_CHECKING:
    import torch

#: Attributes of a module that hold functions which others hung onto it.
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

#: Kinds of operator, as they stand in reports.
KINDS = ("function", "callable", "module", "library", "formula")


@dataclass(frozen=True)
class Overlay:
    """A file that is to be read as if it held something else.

    Args:
        path: absolute, links resolved.
        text: what it is taken to hold.
    """

    path: str
    text: bytes


@dataclass(frozen=True)
class OpRef:
    """One operator, named but not loaded: picklable, cheap, made without importing torch.

    Args:
        target: what reproduces it on the command line, e.g. ``examples/right/square.py:Square``
            or ``entmax.losses:SparsemaxLossFunction``; relative to the working directory.
        source: "file" (``path`` is a .py file), "module" (``path`` is a dotted name),
            "spec" (``path`` is a YAML file) or "library" (``path`` is ``torch.ops.ns.name``).
        path: see ``source``.
        attribute: dotted attribute inside the module, empty for specs and library ops.
        kind: one of :data:`KINDS` where known before loading, else "unknown".
        location: where it is defined, where known before loading.
        explicit: False when a listing found it (the user named a module, file or folder): an op
            that turns out to be absent is then not the user's mistake.
        overlay: what a worker reads in place of one of the user's files, to try a change of it.
    """

    target: str
    source: str
    path: str
    attribute: str = ""
    kind: str = "unknown"
    location: Location | None = None
    explicit: bool = True
    overlay: Overlay | None = None


@dataclass(frozen=True)
class Intent:
    """What an op declares about its gradient.

    Args:
        surrogate: input name → expression of the gradient it is meant to return, in the inputs'
            names and ``grad_output`` (see ``gradlint.spec``); None when nothing is declared.
        once_differentiable: whether backward is marked ``@once_differentiable``.
        stochastic: True when declared; None when unknown.
    """

    surrogate: dict[str, str] | None = None
    once_differentiable: bool = False
    stochastic: bool | None = None


@dataclass
class Op:
    """A loaded operator.

    Args:
        name: short name, e.g. ``LinearFunction``.
        target: the command-line target that reproduces it.
        kind: one of :data:`KINDS`.
        call: takes a sample's ``*args, **kwargs`` and returns the outputs
            (``Function.apply``, the module, the callable, the library op).
        signature: parameters of forward without ``ctx`` or ``self``; names in messages come
            from here. ``*args`` parameters name their elements ``args[0]``, ``args[1]`` …
        function: the ``torch.autograd.Function`` class, for kind "function".
        module: the ``nn.Module`` instance, for kind "module"; its parameters are inputs too.
        intent: what the op declares about itself.
        reference: an oracle taking the same arguments, where a spec gives one.
        sample_inputs: zero-argument callable giving samples, where the op has one.
        location: where the op is defined.
        defining: the object whose source is shown (class or function), if any.
        ignores: rule code → reason, declared with the op.
        constructor: for modules that gradlint constructed, argument name → value it chose.
        constructor_guessed: whether these were chosen without being told.
        notes: what was found or assumed while loading, as sentences.
        dtypes: names of the dtypes that a spec asks to check; None if the run decides.
        devices: the same for device types.
        order: 1 where a spec or the op itself promises first derivatives only.
        sources: the C++ and CUDA files that it was built from, where known.
    """

    name: str
    target: str
    kind: str
    call: Callable[..., Any]
    signature: inspect.Signature | None = None
    function: type[torch.autograd.Function] | None = None
    module: torch.nn.Module | None = None
    intent: Intent = field(default_factory=Intent)
    reference: Callable[..., Any] | None = None
    sample_inputs: Callable[[], Any] | None = None
    location: Location | None = None
    defining: Any = None
    ignores: dict[str, str] = field(default_factory=dict)
    constructor: dict[str, Any] = field(default_factory=dict)
    constructor_guessed: bool = False
    notes: list[str] = field(default_factory=list)
    dtypes: tuple[str, ...] | None = None
    devices: tuple[str, ...] | None = None
    order: int | None = None
    sources: tuple[str, ...] = ()


def comes_with_torch(defined: type) -> bool:
    """Whether a class is PyTorch's own; what its test suites define is not."""
    name = f"{defined.__module__}."
    return name.startswith("torch.") and not name.startswith("torch.testing.")


def is_of_torch(op: Op) -> bool:
    """Whether ``op`` is a Function of PyTorch's, or a module that consists of PyTorch's alone and
    has no hooks."""
    if op.module is None:
        return op.function is not None and comes_with_torch(op.function)
    return all(
        comes_with_torch(type(part)) and not any(vars(part).get(name) for name in _HOOKS)
        for part in op.module.modules()
    )
