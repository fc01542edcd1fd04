"""Functions to pass where an op takes a function."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from gradlint.base.text import short_text


class _Watched:
    """What is noted of the calls of stand-ins, while anybody wants to know."""

    calls: list[bool] | None = None


@contextmanager
def watched() -> Iterator[list[bool]]:
    """The list to which every call of a stand-in in the block adds whether autograd records it."""
    before, _Watched.calls = _Watched.calls, []
    try:
        yield _Watched.calls
    finally:
        _Watched.calls = before


def callables(name: str) -> list[Callable[..., Any]]:
    """Stand-ins for a function argument, chosen by its name."""
    if re.search(r"dist|metric|cdist|covar|gram|kernel", name.lower()):
        distance = squared_distance if re.search(r"sq", name.lower()) else pairwise_distance
        return [distance, stand_in]
    if re.search(r"(^|_|lin)solve", name.lower()):
        return [linear_solution, stand_in]
    return [stand_in, pairwise_distance]


def stand_in(*args: Any, **kwargs: Any) -> torch.Tensor:
    """``t/2 + sin(t)/4`` of the sum t of the tensors, in the shape of the largest one. Tensors that
    do not broadcast to it are replaced by their mean, so that each one gets a gradient."""
    found = _floating((*args, *kwargs.values()))
    return _joined(max(found, key=lambda item: (item.numel(), item.dim())), found)


def linear_solution(matrix: Any, *rest: Any, **others: Any) -> torch.Tensor:
    """The solution of the linear system of a matrix and a right-hand side. What solves anything
    else takes another stand-in, as does what gets a right-hand side alone, since its matrix is not
    known.

    Raises:
        TypeError: these two are no such system.
        RuntimeError: their shapes don't fit; PyTorch's words tell how, and so which would.
    """
    given = (*rest, *others.values())
    if not given:
        return stand_in(matrix)
    right = given[0]
    if not isinstance(matrix, torch.Tensor) or not isinstance(right, torch.Tensor):
        raise TypeError("a linear system is a matrix and a right-hand side")
    dense = matrix if matrix.layout == torch.strided else matrix.to_dense()
    return torch.linalg.solve(dense, right)


def first_stand_in(*args: Any, **kwargs: Any) -> torch.Tensor:
    """As :func:`stand_in`, in the shape of the first tensor that has axes: the function that a
    solver takes returns a state like the one it gets."""
    found = _floating((*args, *kwargs.values()))
    return _joined(next((item for item in found if item.dim()), found[0]), found)


class Closure:
    """A stand-in that also depends on tensors which the op gets after its other arguments.

    Implicit layers and solvers take a function and, as ``*params``, the tensors that it closes
    over; their backward differentiates the function with respect to these.

    Args:
        first: position of the first of these tensors among the op's arguments.
    """

    def __init__(self, first: int) -> None:
        self.first = first
        self.__name__ = "stand_in"

    def over(self, tensors: tuple[Any, ...]) -> Callable[..., Any]:
        """:func:`first_stand_in`, moved by the means of ``tensors``."""

        def closing(*args: Any, **kwargs: Any) -> torch.Tensor:
            found = _floating((*args, *kwargs.values()))
            first = next((item for item in found if item.dim()), found[0])
            return _joined(first, [*found, *tensors])

        return closing

    def __call__(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """As :func:`first_stand_in`, without the other tensors."""
        return first_stand_in(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Closure) and self.first == other.first

    def __hash__(self) -> int:
        return hash((Closure, self.first))

    def __repr__(self) -> str:
        return "<function stand_in>"


class ClosureModule(Closure):
    """A stand-in for a module whose parameters are tensors which the op gets after its other
    arguments.

    Reversible blocks and checkpoints take modules and, as ``*weights``, the parameters of all of
    them in order; their backward returns the gradients of these.

    Args:
        first: position of the first of these tensors among the op's arguments.
        place: position of the module among the modules.
        count: number of the modules; the tensors are shared evenly among them.
        outputs: number of tensors that the module returns.
    """

    def __init__(self, first: int, place: int, count: int, outputs: int = 1) -> None:
        super().__init__(first)
        self.place, self.count, self.outputs = place, count, outputs
        self.__name__ = "module"

    def over(self, tensors: tuple[Any, ...]) -> torch.nn.Module:
        """A module over its share of ``tensors``."""
        start, stop = (len(tensors) * k // self.count for k in (self.place, self.place + 1))
        return _Owner(tensors[start:stop], self.outputs)

    def returning(self, outputs: int) -> ClosureModule:
        """The same stand-in with another number of outputs."""
        return ClosureModule(self.first, self.place, self.count, outputs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClosureModule) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((ClosureModule, self.first, self.place, self.count, self.outputs))

    def __repr__(self) -> str:
        outputs = "" if self.outputs == 1 else f" with {self.outputs} outputs"
        return f"<module stand_in{outputs}>"


class _Owner(torch.nn.Module):
    """:func:`first_stand_in`, moved by the means of the tensors that are its parameters; of
    several outputs, each is another multiple of it."""

    def __init__(self, tensors: tuple[Any, ...], outputs: int) -> None:
        super().__init__()
        self._own, self._outputs = tensors, outputs

    def named_parameters(self, *_: Any, **__: Any) -> Iterator[tuple[str, Any]]:
        """The tensors as they were passed to the op: copies would have no gradient there."""
        return ((f"weight{k}", tensor) for k, tensor in enumerate(self._own))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        found = _floating((*args, *kwargs.values()))
        first = next((item for item in found if item.dim()), found[0])
        made = _joined(first, [*found, *self._own])
        if self._outputs == 1:
            return made
        return tuple(made / (k + 1) for k in range(self._outputs))


class Elementwise(torch.nn.Module):
    """``t/(k + 2) + sin(t)/4`` of a tensor t, whatever else it is called with: a stand-in for the
    module that a block is made around.

    Args:
        number: k, which differs from module to module.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def forward(self, value: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        """In the shape of the first argument."""
        return value / (self.number + 2) + torch.sin(value) / 4

    def __repr__(self) -> str:
        return f"Elementwise({self.number})"


class Owner:
    """A module that was given, some of whose parameters were given beside it as tensors.

    Reversible blocks, checkpoints and implicit layers take both: a value of such a tensor is one
    of the module's parameter.

    Args:
        module: as it was given.
        owned: name of the parameter → its position among the op's arguments.
    """

    def __init__(self, module: torch.nn.Module, owned: Mapping[str, int]) -> None:
        self.module, self.owned = module, dict(owned)

    def over(self, args: Sequence[Any]) -> torch.nn.Module:
        """The module, with the tensors among ``args`` as its parameters; everything else of it is
        shared."""
        given = {id(self.module.get_parameter(k)): args[at] for k, at in self.owned.items()}
        return _with_parameters(self.module, given, {})

    def __repr__(self) -> str:
        return repr(self.module)


def with_owners(args: Sequence[Any]) -> tuple[Any, ...]:
    """``args``, in which every module is an :class:`Owner` that has parameters among them."""
    places = {id(item): at for at, item in enumerate(args) if isinstance(item, torch.Tensor)}

    def owner(item: Any) -> Any:
        if not isinstance(item, torch.nn.Module) or isinstance(item, torch.jit.ScriptModule):
            return item
        owned = {k: places[id(p)] for k, p in item.named_parameters() if id(p) in places}
        return Owner(item, owned) if owned else item

    return tuple(owner(item) for item in args)


def _with_parameters(
    module: torch.nn.Module,
    given: Mapping[int, torch.Tensor],
    made: dict[int, torch.nn.Module],
) -> torch.nn.Module:
    """A shallow copy of a module, with ``given`` in place of the parameters of these ids."""
    if id(module) not in made:
        found = made[id(module)] = object.__new__(type(module))
        vars(found).update(vars(module))
        own = vars(module)["_parameters"].items()
        parts = vars(module)["_modules"].items()
        vars(found).update(
            _parameters={name: given.get(id(item), item) for name, item in own},
            _modules={
                name: None if part is None else _with_parameters(part, given, made)
                for name, part in parts
            },
        )
    return made[id(module)]


class Attributes:
    """An object of which nothing is known but the attributes that are read from it.

    Attributes:
        beyond: whether backward reads others than forward does, so that it takes a caller to know
            how these belong together.
    """

    beyond = False

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={short_text(value)}" for name, value in vars(self).items())
        return f"Attributes({shown})"


def reads_beyond(value: Any) -> bool:
    """Whether ``value`` was guessed, and backward reads attributes of it that forward does not."""
    return isinstance(value, Attributes) and value.beyond


def is_stand_in(value: Any) -> bool:
    """Whether ``value`` stands in for a function or a module of which nothing is known, or for
    several in a list."""
    functions = (stand_in, first_stand_in, pairwise_distance, squared_distance)
    modules = (torch.nn.Tanh, torch.nn.Identity)
    if isinstance(value, (list, tuple)):
        return bool(value) and all(is_stand_in(v) or type(v) is Elementwise for v in value)
    return (
        isinstance(value, Closure)
        or reads_beyond(value)
        or type(value) in modules
        or any(value is function for function in functions)
    )


def closures(args: Iterable[Any]) -> Iterator[Closure]:
    """The stand-ins among ``args``, also in lists, that depend on other arguments."""
    for item in args:
        if isinstance(item, Closure):
            yield item
        elif isinstance(item, list):
            yield from closures(item)


def with_bound_closures(call: Callable[..., Any]) -> Callable[..., Any]:
    """``call``, in which every :class:`Closure` and every :class:`Owner` among the arguments
    depends on the tensors of that call."""

    def bound(item: Any, args: tuple[Any, ...]) -> Any:
        if isinstance(item, Closure):
            return item.over(args[item.first :])
        if isinstance(item, list) and any(True for _ in closures(item)):
            return [bound(part, args) for part in item]
        return item.over(args) if isinstance(item, Owner) else item

    def called(*args: Any, **kwargs: Any) -> Any:
        return call(*(bound(item, args) for item in args), **kwargs)

    return called


def _floating(values: Iterable[Any]) -> list[torch.Tensor]:
    found = [item for item in values if isinstance(item, torch.Tensor)]
    found = [item for item in found if item.is_floating_point() or item.is_complex()]
    if not found:
        raise TypeError("a function argument was called without a tensor")
    return found


def _joined(main: torch.Tensor, found: list[torch.Tensor]) -> torch.Tensor:
    if _Watched.calls is not None:
        _Watched.calls.append(torch.is_grad_enabled())
    total = main
    for item in found:
        if item is not main:
            total = total + (item if _broadcasts(item.shape, main.shape) else item.mean())
    # A contraction, so that iterations converge. Its slope is never zero and its values are
    # unbounded, so that equations with it have solutions that can be differentiated.
    return 0.5 * total + 0.25 * torch.sin(total)


def _broadcasts(shape: torch.Size, to: torch.Size) -> bool:
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(one in (1, other) for one, other in pairs)


def pairwise_distance(x: torch.Tensor, y: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    """Distances between the rows of ``x`` and of ``y``."""
    return squared_distance(x, y).sqrt()


def squared_distance(x: torch.Tensor, y: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    """Squared distances between the rows of ``x`` and of ``y``."""
    return (x.unsqueeze(-2) - y.unsqueeze(-3)).square().sum(-1)
