"""Record calls of ``Function.apply``, the only place where all arguments can be seen."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any

import torch
from torch.autograd.function import FunctionMeta, _SingleLevelFunction

from gradlint.trace.graph import only_leaf


@dataclass(frozen=True)
class TensorMeta:
    """What the engine compares a gradient with: shape, dtype and device of the argument."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool = False


@dataclass
class NodeRun:
    """One call of a Python Function's backward inside the run.

    Args:
        function: the ``torch.autograd.Function`` class.
        grad_outputs: what backward received.
        returned: exactly what the user's backward returned, or None if it raised.
        raised: what it raised, if it did.
        line: line in the source file of the ``return`` that was executed, if known.
        needs_input_grad: ``ctx.needs_input_grad``.
        is_tensor: for every forward argument, whether it was a tensor.
        arguments: names of forward's arguments, without ``ctx``.
        metas: for every forward argument, its :class:`TensorMeta`, or None if it is not a tensor.
        leaves: for every forward argument, the differentiable input of the problem that it is
            (an index), or None.
        reached: likewise the only one that it is computed from, by whatever operations.
    """

    function: type
    grad_outputs: tuple[Any, ...] = ()
    returned: Any = None
    raised: BaseException | None = None
    line: int | None = None
    needs_input_grad: tuple[bool, ...] = ()
    is_tensor: tuple[bool, ...] = ()
    arguments: tuple[str, ...] = ()
    metas: tuple[TensorMeta | None, ...] = ()
    leaves: tuple[int | None, ...] = ()
    reached: tuple[int | None, ...] = ()


@dataclass
class Applied:
    """One call of ``Function.apply`` during forward: the node it made and its arguments."""

    function: type
    node: Any
    metas: tuple[TensorMeta | None, ...]
    leaves: tuple[int, ...]  # ids of the argument objects
    reached: tuple[int | None, ...] = ()  # ids of the only leaves that these are made of


def watch_apply() -> AbstractContextManager[list[Applied]]:
    """Note every ``Function.apply`` of the body, also if it was bound before (``f =
    MyFunction.apply``)."""
    return _by_forward() if applies_in_cpp() else _by_base()


@contextmanager
def _by_base() -> Iterator[list[Applied]]:
    """Watch through the class from which ``Function.apply`` inherits its last step."""
    applied: list[Applied] = []

    def apply(cls: type, *args: Any, **kwargs: Any) -> Any:
        returned = super(_SingleLevelFunction, cls).apply(*args, **kwargs)  # type: ignore[misc]
        parts = returned if isinstance(returned, tuple) else (returned,)
        try:
            nodes = [part.grad_fn for part in parts if isinstance(part, torch.Tensor)]
            node = next((n for n in nodes if getattr(n, "_forward_cls", None) is cls), None)
            applied.append(_applied(cls, node, args, kwargs))
        except Exception:  # tensor subclasses may raise anywhere, which must not affect the op
            return returned
        return returned

    with apply_replaced(apply):
        yield applied


@contextmanager
def apply_replaced(apply: Callable[..., Any]) -> Iterator[None]:
    """In the body, ``apply`` is the class method with which ``Function.apply`` ends."""
    base: Any = _SingleLevelFunction
    missing = object()
    before = base.__dict__.get("apply", missing)
    base.apply = classmethod(apply)
    try:
        yield
    finally:
        if before is missing:
            del base.apply
        else:
            base.apply = before


@contextmanager
def _by_forward() -> Iterator[list[Applied]]:
    """Watch through the static method that gets ``ctx``."""
    applied: list[Applied] = []

    def noting(function: type, method: Callable[..., Any], name: str) -> Callable[..., Any]:
        @wraps(method)
        def noted(*args: Any, **kwargs: Any) -> Any:
            # Tensor subclasses may raise anywhere, which must not affect the op.
            with suppress(Exception):
                node, *given = args
                if name == "setup_context":
                    given, named = kwargs["inputs"] if "inputs" in kwargs else given[0], {}
                else:
                    named = kwargs
                applied.append(_applied(function, node, tuple(given), named))
            return method(*args, **kwargs)

        return noted if (name == "setup_context") == sets_up_context(function) else method

    with methods_replaced(("forward", "setup_context"), noting):
        yield applied


def applies_in_cpp() -> bool:
    """Whether ``Function.apply`` is written in C++ (torch 2.15 and later). It cannot be replaced
    then, but it looks up ``forward`` and ``setup_context`` on the class at each call."""
    return not isinstance(vars(torch.autograd.Function)["apply"], classmethod)


@contextmanager
def methods_replaced(
    names: Sequence[str],
    replacement: Callable[[type, Callable[..., Any], str], Callable[..., Any]],
) -> Iterator[None]:
    """In the body, static methods of Functions are ``replacement(function, method, name)``. This
    uses the precedence of properties of the metaclass over attributes of the class."""
    for name in names:
        setattr(FunctionMeta, name, _Method(name, replacement))
    try:
        yield
    finally:
        for name in names:
            delattr(FunctionMeta, name)


class _Method:
    def __init__(
        self, name: str, replacement: Callable[[type, Callable[..., Any], str], Callable[..., Any]]
    ) -> None:
        self._name, self._replacement = name, replacement

    def __get__(self, function: Any, _: Any = None) -> Any:
        own = next(vars(one)[self._name] for one in function.__mro__ if self._name in vars(one))
        method = own.__get__(None, function)
        if function in (_SingleLevelFunction, torch.autograd.Function):
            return method
        return self._replacement(function, method, self._name)

    # Without this method, the attribute of the class would take precedence.
    def __set__(self, function: Any, value: Any) -> None:
        raise AttributeError(f"`{self._name}` of {function.__name__} is in use")


def sets_up_context(function: Any) -> bool:
    """Whether a Function defines or inherits a ``setup_context``."""
    holder = next(one for one in function.__mro__ if "setup_context" in vars(one))
    return holder is not _SingleLevelFunction


def _applied(function: type, node: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Applied:
    given = _in_order(function, args, kwargs)
    metas, reached = tuple(map(_meta, given)), tuple(map(_reached, given))
    return Applied(function, node, metas, tuple(map(id, given)), reached)


def _reached(value: Any) -> int | None:
    leaf = only_leaf(value) if isinstance(value, torch.Tensor) and value.requires_grad else None
    return None if leaf is None else id(leaf)


def _in_order(function: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments of ``apply`` in the order of backward's gradients: that of forward."""
    signature = forward_signature(function) if kwargs else None
    if signature is None:
        return args
    bound = signature.bind(*args, **kwargs)
    return (*bound.args, *bound.kwargs.values())


def _meta(value: Any) -> TensorMeta | None:
    if not isinstance(value, torch.Tensor):
        return None
    return TensorMeta(tuple(value.shape), value.dtype, value.device, value.requires_grad)


def forward_signature(function: Any) -> inspect.Signature | None:
    """Parameters of ``function.forward`` without ``ctx``."""
    try:
        signature = inspect.signature(function.forward)
    except (TypeError, ValueError):
        return None
    parameters = list(signature.parameters.values())
    separate = sets_up_context(function)
    variadic = bool(parameters) and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL
    return signature.replace(parameters=parameters[0 if separate or variadic else 1 :])
