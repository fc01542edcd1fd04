"""In a worker: from a reference to the operator itself."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping
from types import FunctionType, ModuleType
from typing import Any

import torch

from gradlint.base.errors import TargetError
from gradlint.model.op import Op, OpRef
from gradlint.model.settings import Settings
from gradlint.targets._construct import construct
from gradlint.targets._library import (
    expand_namespace,
    is_library_op,
    load_library,
    written_function,
)
from gradlint.targets._missing import absent
from gradlint.targets._scan import only_bases
from gradlint.targets._static import static_module
from gradlint.targets.build import from_object, is_method_of_function, no_module, no_operator
from gradlint.targets.importing import import_named, import_target, module_attribute
from gradlint.targets.intent import attribute
from gradlint.targets.load_error import LoadError, attempt
from gradlint.targets.locate import find_module
from gradlint.targets.resolve import EVERY


def load(ref: OpRef, settings: Settings, constructor: Mapping[str, Any] | None = None) -> Op:
    """The operator that ``ref`` names. Runs the user's code: only in a worker.

    Args:
        ref: a reference as :func:`resolve` or :func:`expand` gives it, not a spec.
        settings: the run's settings; ``imports`` are imported first.
        constructor: the arguments by which a class of modules makes one; None: they are guessed.

    Raises:
        LoadError: the user's code raised (``sys.exit`` and the like included).
        TargetError: nothing of that name exists, or it is not an operator.
    """
    if ref.source == "spec":
        raise TargetError(f"`{ref.path}` is a spec; open it with gradlint.spec.open.open_spec")
    if ref.attribute == EVERY:
        raise TargetError(f"`{ref.target}` may stand for several operators; expand it first")
    if ref.source == "library":
        import_named(settings)
        if constructor is not None:
            raise no_module(ref.target)
        return load_library(ref.path, settings)
    module = import_target(ref, settings)
    file = module_attribute(module, "__file__") or ""
    name = ref.attribute.rpartition(".")[2]
    try:
        thing = attempt(f"looking up `{ref.attribute}`", lambda: look_up(module, ref), file)
        op = attempt(
            f"reading `{ref.attribute}`",
            lambda: from_object(thing, name=name, constructor=constructor),
            file,
        )
    except TargetError as error:
        if ref.explicit or constructor is not None:
            raise
        raise _replaced(ref, error) from error
    op.target = ref.target
    op.location = op.location or ref.location
    return op


def expand(ref: OpRef, settings: Settings) -> list[OpRef]:
    """The operators behind ``ref``; where its attribute is ``"*"``, its module is imported.

    Returns:
        ``[ref]`` for a reference to one operator; else one reference for each Function class,
        registered op, and module or callable with ``sample_inputs`` that the module defines.

    Raises:
        LoadError: the user's code raised.
        TargetError: no such module or namespace of ops exists.
    """
    if ref.attribute != EVERY:
        return [ref]
    if ref.source == "library":
        import_named(settings)
        return expand_namespace(ref, settings)
    module = import_target(ref, settings)
    file = module_attribute(module, "__file__") or ""
    found = attempt(f"listing `{ref.path}`", lambda: _defined(module), file)
    return [
        OpRef(f"{ref.target}:{name}", ref.source, ref.path, name, kind, explicit=False)
        for name, kind in found
    ]


def look_up(module: ModuleType, ref: OpRef) -> Any:
    """What the dotted attribute of ``ref`` is in ``module``."""
    thing: Any = module
    parts = ref.attribute.split(".")
    for index, part in enumerate(parts):
        owner = thing
        try:
            thing = getattr(owner, part)
        except AttributeError:
            if part in dir(owner) and not isinstance(owner, ModuleType):
                raise  # a property that raised
            thing = _submodule(owner, part)
            if thing is None:
                raise _absent(ref, owner, index) from None
    if isinstance(thing, ModuleType):
        raise no_operator(thing, ref.attribute)
    if is_method_of_function(owner, parts[-1]):
        raise TargetError(
            f"`{ref.attribute}` is a method of a torch.autograd.Function",
            hint=f"Name the class: `{ref.target.rpartition('.')[0]}`.",
        )
    return _bound(owner, parts[-1], thing)


def _replaced(ref: OpRef, error: TargetError) -> LoadError:
    """The error for a name that a listing found, and that stands for no operator once its module is
    imported: ``except ImportError: Fast = None``."""
    return LoadError(
        f"`{ref.attribute}` is an operator in the source, but importing `{ref.path}` leaves "
        f"something else: {error.message}",
        location=ref.location,
        kind="absent",
        hint="It is probably defined only under a condition that does not hold here, or its name "
        "is given to something else.",
    )


def _absent(ref: OpRef, owner: Any, index: int) -> Exception:
    parts = ref.attribute.split(".")
    if not ref.explicit:
        return LoadError(
            f"`{ref.attribute}` is in the source, but importing `{ref.path}` does not define it",
            location=ref.location,
            kind="absent",
            hint="It is probably defined only under a condition that does not hold here.",
        )
    prefix = ".".join(parts[:index])
    names = [name for name in dir(owner) if not name.startswith("__")]
    if index == 0:
        listed = [name for name, _ in _defined(owner)]
        return absent(ref, listed, names)
    full = [f"{prefix}.{name}" for name in names]
    return absent(ref, [], full)


def _submodule(owner: Any, name: str) -> ModuleType | None:
    if not isinstance(owner, ModuleType) or module_attribute(owner, "__path__") is None:
        return None
    full = f"{owner.__name__}.{name}"
    if full in sys.modules:
        return sys.modules[full]
    return importlib.import_module(full) if find_module(full) else None


def _bound(owner: Any, name: str, thing: Any) -> Any:
    """A method of a class bound to an instance where it needs one."""
    if not isinstance(owner, type) or not isinstance(thing, FunctionType):
        return thing
    held = inspect.getattr_static(owner, name)
    first = next(iter(inspect.signature(thing).parameters), "")
    if not isinstance(held, FunctionType) or first != "self":
        return thing
    try:
        instance = construct(owner)[0] if issubclass(owner, torch.nn.Module) else owner()
    except Exception as error:
        raise TargetError(
            f"`{owner.__name__}.{name}` is a method and `{owner.__name__}` can't be constructed "
            "without arguments",
            hint=f"Make an instance in the module and name its method: `instance.{name}`.",
        ) from error
    return getattr(instance, name)


def _defined(module: ModuleType) -> list[tuple[str, str]]:
    """(name, kind) of the operators that a module defines itself, in the order it does; without
    the Functions that its text shows to be base classes."""
    found: list[tuple[str, str]] = []
    seen: set[int] = set()
    static = static_module(module_attribute(module, "__file__") or "")
    bases = only_bases(static) if static is not None else set()
    for name, thing in list(vars(module).items()):
        kind = _listed_kind(module, thing)
        if kind and name not in bases and id(thing) not in seen:
            seen.add(id(thing))
            found.append((name, kind))
    return found


def _listed_kind(module: ModuleType, thing: Any) -> str:
    own = attribute(thing, "__module__") == module.__name__
    if isinstance(thing, type):
        return _listed_class(thing) if own else ""
    if is_library_op(thing):
        written = written_function(thing)
        return "library" if getattr(written, "__module__", None) == module.__name__ else ""
    if isinstance(thing, ModuleType) or attribute(thing, "sample_inputs") is None:
        return ""
    if isinstance(thing, torch.nn.Module):
        return "module"
    return "callable" if own and callable(thing) else ""


def _listed_class(cls: type) -> str:
    if issubclass(cls, torch.autograd.Function):
        return "" if cls.forward is torch.autograd.Function.forward else "function"
    return "module" if issubclass(cls, torch.nn.Module) and attribute(cls, "sample_inputs") else ""
