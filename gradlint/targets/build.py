"""From a live object to an operator."""

from __future__ import annotations

import enum
import functools
import inspect
import sys
from collections.abc import Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

import torch

from gradlint.base.errors import TargetError
from gradlint.model.op import Op
from gradlint.targets import source
from gradlint.targets._construct import (
    construct,
    construct_with,
    other_constructions,
    shown_call,
)
from gradlint.targets._library import is_library_op, library_op, signature_of_schema
from gradlint.targets.intent import attribute, ignores_of, intent_of, order_of, samples_of
from gradlint.targets.load_error import attempt, short_repr
from gradlint.targets.nodes import code_of, vars_of
from gradlint.targets.signature import forward_signature, partial_signature, signature_of
from gradlint.targets.source_file import shown_path

_METHODS = ("forward", "backward", "vjp", "jvp", "setup_context")


def from_object(
    obj: Any, *, name: str | None = None, constructor: Mapping[str, Any] | None = None
) -> Op:
    """The operator that ``obj`` is.

    Args:
        obj: a ``torch.autograd.Function`` class (or its ``apply``), an ``nn.Module`` instance or
            class (constructed, see ``Op.constructor``), an op registered with torch, or any
            callable.
        name: what to call it; default its own name.
        constructor: the arguments by which a module class is constructed; None: they are guessed.

    Raises:
        TargetError: it is not an operator.
        LoadError: constructing or reading it raised.
    """
    if isinstance(obj, Op):
        return obj
    shown = name or short_repr(obj)
    if constructor is not None:
        if not isinstance(obj, type) or not issubclass(obj, torch.nn.Module):
            raise no_module(shown)
        op = attempt(f"reading `{shown}`", lambda: _constructed(obj, name, constructor))
    else:
        op = attempt(f"reading `{shown}`", lambda: _build(obj, name))
    op.target = op.target or _target_of(op.defining, op.name)
    if op.location is None and op.defining is not None:
        op.location = source.definition(op)[0]
    return op


def _build(obj: Any, name: str | None) -> Op:
    if isinstance(obj, type):
        return _from_class(obj, name)
    if isinstance(obj, torch.nn.Module):
        return _from_module(obj, name)
    if is_library_op(obj):
        op = library_op(obj, name)
        return _declared(op, obj, op.defining)
    if isinstance(obj, functools.partial):
        return _from_partial(obj, name)
    owner = getattr(obj, "__self__", None)
    if isinstance(owner, type) and issubclass(owner, torch.autograd.Function):
        method = getattr(obj, "__name__", "")
        if method == "apply":
            return _from_function(owner, name)
    if callable(obj) and not isinstance(obj, ModuleType):
        return _from_callable(obj, name)
    raise no_operator(obj, name)


def no_module(name: str) -> TargetError:
    """The error for arguments of a constructor where nothing is constructed."""
    return TargetError(
        f"`{name}` is no class of modules, and takes no arguments of a constructor",
        hint="Leave `constructor` out, or name a subclass of torch.nn.Module.",
    )


def no_operator(obj: Any, name: str | None = None) -> TargetError:
    """The error for an object that can't be checked, with what it is and what to name instead."""
    what = f"an object of type {type(obj).__name__}"
    if isinstance(obj, ModuleType):
        what = "a module"
    elif isinstance(obj, type):
        what = "an Enum class" if issubclass(obj, enum.Enum) else "a class that is not an operator"
    return TargetError(
        f"`{name or short_repr(obj)}` is {what}",
        hint="An operator is a torch.autograd.Function class, an nn.Module, a registered op or "
        "another callable.",
    )


def _from_class(cls: type, name: str | None) -> Op:
    if issubclass(cls, torch.autograd.Function):
        return _from_function(cls, name)
    if issubclass(cls, torch.nn.Module):
        module, chosen = construct(cls)
        return _by_guess(module, name, chosen)
    called = inspect.getattr_static(cls, "__call__", None)
    if isinstance(called, FunctionType) and callable(getattr(cls, "sample_inputs", None)):
        instance = attempt(f"constructing `{cls.__name__}()`", cls)
        return _from_callable(instance, name or cls.__name__)
    raise no_operator(cls, name or cls.__name__)


def _by_guess(module: torch.nn.Module, name: str | None, chosen: dict[str, Any]) -> Op:
    cls = type(module)
    op = _from_module(module, name or cls.__name__)
    op.constructor, op.constructor_guessed = chosen, bool(chosen)
    if chosen:
        op.notes.append(f"constructed as {shown_call(cls, chosen)}; the arguments are guesses")
    return op


def made_anew(op: Op, values: dict[str, Any]) -> Op:
    """The op of a module like that of ``op``, made with other guesses for the arguments of its
    constructor.

    Raises:
        LoadError: the constructor raised.
    """
    return _by_guess(construct_with(type(op.module), values), op.name, values)  # type: ignore[arg-type]


def made_otherwise(op: Op) -> Iterator[Op]:
    """Ops of modules like that of ``op``, each made with the next guesses for the arguments of its
    constructor."""
    if op.module is not None and op.constructor_guessed:
        for module, values in other_constructions(type(op.module), op.constructor):
            yield _by_guess(module, op.name, values)


def _constructed(cls: type[torch.nn.Module], name: str | None, values: Mapping[str, Any]) -> Op:
    op = _from_module(construct_with(cls, values), name or cls.__name__)
    op.constructor = dict(values)
    return op


def _from_function(cls: Any, name: str | None) -> Op:
    if cls.forward is torch.autograd.Function.forward:
        raise TargetError(
            f"`{name or cls.__name__}` is not an operator: it does not define forward",
            hint="Name a subclass that does.",
        )
    op = Op(
        name or cls.__name__,
        "",
        "function",
        cls.apply,
        forward_signature(cls),
        function=cls,
        defining=cls,
    )
    for method in ("forward", "backward", "vjp", "setup_context"):
        held = inspect.getattr_static(cls, method, None)
        if isinstance(held, FunctionType) and not held.__module__.startswith("torch.autograd"):
            op.notes.append(f"`{method}` is not a @staticmethod")
    return _declared(op, cls, cls)


def _from_module(module: Any, name: str | None) -> Op:
    # torch.compile wraps a module in one whose own forward takes anything.
    written = attribute(module, "_orig_mod") or module
    cls = type(written)
    op = Op(
        name or cls.__name__,
        "",
        "module",
        module,
        signature_of(written.forward),
        module=module,
        defining=cls,
    )
    return _declared(op, module, cls)


def _from_partial(partial: functools.partial[Any], name: str | None) -> Op:
    if isinstance(partial.func, type) and issubclass(partial.func, torch.nn.Module):
        module = attempt(f"constructing `{partial.func.__name__}`", partial)
        return _from_module(module, name or partial.func.__name__)
    inner = _build(partial.func, None)
    op = Op(
        name or inner.name,
        "",
        "callable",
        partial,
        partial_signature(partial, inner.signature),
        defining=inner.defining,
        intent=inner.intent,
        ignores=inner.ignores,
    )
    op.sample_inputs = samples_of(partial)
    return op


def _from_callable(function: Any, name: str | None) -> Op:
    own = getattr(function, "__name__", None) or type(function).__name__
    signature: inspect.Signature | None
    if type(function).__name__ == "ScriptFunction" and hasattr(function, "schema"):
        # Its schema names the arguments whatever else has wrapped its __call__.

        signature = signature_of_schema(function.schema)
    else:
        signature = signature_of(function)
    has_source = isinstance(function, FunctionType) or code_of(function) is not None
    defining = function if has_source else type(function)
    if not has_source and type(function).__module__.partition(".")[0] in ("builtins", "torch"):
        defining = None
    op = Op(name or own, "", "callable", function, signature, defining=defining)
    return _declared(op, function, defining)


def _declared(op: Op, thing: Any, defining: Any) -> Op:
    """``op`` with what ``thing`` declares about itself."""
    op.intent = intent_of(thing)
    op.sample_inputs = samples_of(thing)
    op.ignores = ignores_of(thing)
    op.order = order_of(thing)
    if defining is not thing and defining is not None:
        op.ignores = {**ignores_of(defining), **op.ignores}
    return op


def _target_of(defining: Any, name: str) -> str:
    """The target that names ``defining`` on the command line, as far as it is known."""
    module = getattr(defining, "__module__", None)
    qualified = getattr(defining, "__qualname__", None) or name
    if not isinstance(module, str) or "<" in qualified:
        return name
    loaded = sys.modules.get(module)
    file = vars_of(loaded).get("__file__")
    held: Any = loaded
    for part in qualified.split("."):
        held = vars_of(held).get(part)
    if held is None:  # made by a function, or not there under its name
        return name
    if module == "__main__" or module.startswith("_gradlint_"):
        return f"{shown_path(file)}:{qualified}" if isinstance(file, str) else name
    return f"{module}:{qualified}"


def is_method_of_function(owner: Any, name: str) -> bool:
    """Whether ``owner`` is a Function class and ``name`` one of its static methods."""
    return (
        isinstance(owner, type) and issubclass(owner, torch.autograd.Function) and name in _METHODS
    )
