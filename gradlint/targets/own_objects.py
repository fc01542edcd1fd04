"""Objects of a package's own classes, for arguments that are objects: a solver, a kernel, a graph.

Which class is meant is told by an annotation, or by what the code does with the argument: an object
of a class that stands beside the operator and has all methods that are called of it will do.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import torch

from gradlint.targets._construct import (
    concrete_subclasses,
    construct,
    instance_of,
    simplest_first,
)

#: Classes of which an instance is tried for one argument (heuristic).
_MOST_TRIED = 16


def own_objects(
    module: str,
    classes: Sequence[type],
    called: Collection[str],
    read: Collection[str],
    *,
    by_self: bool = False,
) -> Iterator[Any]:
    """Objects that an argument may be, the likeliest first.

    Args:
        module: name of the module of the operator.
        classes: those that an annotation names.
        called: methods that the code calls of the argument.
        read: attributes that it reads from it, these methods among them.
        by_self: whether a method somewhere passes its own object.
    """
    tried = itertools.chain(
        _annotated(classes),
        _with_methods(module, called),
        _defined_in(module) if by_self else (),
    )
    for cls in itertools.islice(dict.fromkeys(tried), _MOST_TRIED):
        made = _made(cls)
        if made is not None and all(hasattr(made, name) for name in read):
            yield made


def _annotated(classes: Sequence[type]) -> Iterator[type]:
    for cls in classes:
        yield cls
        yield from concrete_subclasses(cls)


def _with_methods(module: str, called: Collection[str]) -> Iterator[type]:
    """None where all of the methods are those of any module or tensor: these tell no class."""
    telling = [
        name
        for name in called
        if not hasattr(torch.nn.Module, name) and not hasattr(torch.Tensor, name)
    ]
    package = module.partition(".")[0]
    others = [name for name in list(sys.modules) if name.startswith(f"{package}.")]
    for name in dict.fromkeys([module, *others]) if telling else ():
        yield from simplest_first(
            cls
            for cls in list(vars(sys.modules.get(name, torch.nn)).values())
            if isinstance(cls, type)
            and cls.__module__.partition(".")[0] == package
            and not issubclass(cls, torch.autograd.Function)
            and all(callable(getattr(cls, method, None)) for method in called)
        )


def _defined_in(module: str) -> Iterator[type]:
    """The classes of a module other than Functions, those of modules first."""
    found = [
        cls
        for cls in vars(sys.modules.get(module, torch.nn)).values()
        if isinstance(cls, type)
        and cls.__module__ == module
        and not issubclass(cls, torch.autograd.Function)
    ]
    yield from sorted(found, key=lambda cls: not issubclass(cls, torch.nn.Module))


def _made(cls: type) -> Any:
    try:
        if issubclass(cls, torch.nn.Module):
            return construct(cls)[0]
        return instance_of(cls)
    except Exception:  # a constructor can raise anything
        return None
