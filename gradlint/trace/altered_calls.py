"""Forward run with one of its calls altered, so that its derivative changes and its value does not.

If backward leaves out a term, what it returns is the derivative of a forward in which some value
does not move. Under :class:`Altered` forward is that function: the operand of one call, or its
result, moves some times as far from where it is at the sample as it would. A call stands for all
its runs in a loop.
"""

from __future__ import annotations

import ast
import linecache
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_unflatten

import gradlint

_TORCH, _GRADLINT = (
    os.path.dirname(module.__file__ or "") + os.sep for module in (torch, gradlint)
)

#: Makes a call with these leaves of its arguments.
Call = Callable[[Sequence[Any]], Any]

#: Parts of a call that an alteration can change.
OPERAND, RESULT, THROUGH, NUMBER, LAST = "operand", "result", "through", "number", "last"

#: Elements that are kept of a run (heuristic: 16 MB).
MOST_KEPT = 2_000_000

#: Names of functions whose whole numbers count as numbers; those of others may be axes or sizes.
_ARITHMETIC = frozenset(
    {"add", "sub", "rsub", "mul", "div", "truediv", "rtruediv", "pow", "rpow", "floordiv"}
    | {"true_divide", "multiply", "divide", "subtract", "where", "masked_fill"}
    | {"clamp", "clip", "clamp_min", "clamp_max", "lt", "le", "gt", "ge"}
)

#: Names of functions whose operands PyTorch may exchange.
_COMMUTATIVE = frozenset({"add", "mul"})

#: Names of functions whose flags count as numbers: whether a variance is that of a sample.
_VARIANCES = frozenset({"var", "std", "var_mean", "std_mean"})

#: Names of functions that pick elements of a tensor.
_PICKING = frozenset(
    {"getitem", "index_select", "gather", "take", "take_along_dim", "unfold", "embedding"}
)

#: Names of functions that choose elements along an axis, some more than once, and return these with
#: their indices.
_CHOOSING = frozenset({"cummax", "cummin"})


class TooMuch(RuntimeError):
    """A run keeps more than :data:`MOST_KEPT` elements."""


@dataclass(frozen=True)
class Site:
    """A call of one of PyTorch's functions in the code of the user."""

    code: CodeType
    instruction: int
    name: str

    @property
    def positions(self) -> tuple[int | None, int | None, int | None, int | None]:
        """First and last line, first and last column; before Python 3.11 the line alone."""
        if hasattr(self.code, "co_positions"):
            return list(self.code.co_positions())[self.instruction // 2]
        lines = [n for start, end, n in self.code.co_lines() if start <= self.instruction < end]
        return (lines[0] if lines else None), None, None, None

    @property
    def line(self) -> int:
        """Its line in the file."""
        return self.positions[0] or self.code.co_firstlineno

    @property
    def text(self) -> str:
        """Its source on one line; "" if it is not known."""
        first, last, start, stop = self.positions
        if first is None or last is None:
            return ""
        lines = [linecache.getline(self.code.co_filename, k) for k in range(first, last + 1)]
        whole = "".join(lines).encode()
        if not whole or start is None or stop is None:
            return ""
        end = len(whole) - len(lines[-1].encode()) + stop
        return " ".join(whole[start:end].decode(errors="replace").split())

    @property
    def expressions(self) -> list[ast.expr]:
        """Its operands as they are written, those of lists one by one; empty if not known."""
        try:
            node = ast.parse(self.text, mode="eval").body
        except SyntaxError:
            return []
        found: list[ast.expr] = []
        if isinstance(node, ast.BinOp):
            found = [node.left, node.right]
        elif isinstance(node, ast.UnaryOp):
            found = [node.operand]
        elif isinstance(node, ast.Compare):
            found = [node.left, *node.comparators]
        elif isinstance(node, ast.Subscript):
            found = [node.value, node.slice]
        elif isinstance(node, ast.Call):
            of_module = not isinstance(node.func, ast.Attribute) or _is_module(node.func.value)
            found = node.args if of_module else [node.func.value, *node.args]  # type: ignore[attr-defined]
        return list(_one_by_one(found))


def _one_by_one(nodes: Sequence[ast.expr]) -> Iterator[ast.expr]:
    for node in nodes:
        if isinstance(node, (ast.List, ast.Tuple)):
            yield from _one_by_one(node.elts)
        else:
            yield node


def _is_module(node: ast.expr) -> bool:
    """Whether an expression is a module by its name, such as ``torch.nn.functional``."""
    names = ast.unparse(node).split(".")
    dotted = all(name.isidentifier() for name in names)
    return dotted and (names[0] == "torch" or names[-1] in ("F", "functional", "linalg"))


@dataclass
class Recorded:
    """A call as it was at the sample.

    Attributes:
        operands: of its arguments, the floating tensors by position among all leaves.
        numbers: and the numbers.
        result: what it returned, if that is one floating tensor, or one with its indices.
        reads: the identities of its operands.
        last: for a call that picks some elements of its first operand more than once, True for
            the last time that each is picked.
        positional: number of leaves that were given by position.
        moving: positions of the operands that move with the inputs; -1 stands for the result.
    """

    site: Site
    operands: dict[int, torch.Tensor]
    numbers: dict[int, float]
    result: torch.Tensor | None
    reads: dict[int, int] = field(default_factory=dict)
    last: torch.Tensor | None = None
    positional: int = 0
    moving: set[int] = field(default_factory=set)

    def operand(self, position: int) -> str:
        """The source of the operand at ``position``; "" where it can't be told."""
        found = self.site.expressions
        name = self.site.name
        if any(isinstance(one, ast.Starred) for one in found) or position >= self.positional:
            return ""
        if name.startswith("__r"):
            found.reverse()
        elif name.strip("_") in _COMMUTATIVE and position == 0 and 1 in self.numbers:
            # PyTorch puts the number behind the tensor: which is which shows if it is written out.
            found = [one for one in found if not isinstance(one, ast.Constant)]
            return ast.unparse(found[0]) if len(found) == 1 else ""
        if len(found) < self.positional or isinstance(found[position], ast.Constant):
            return ""  # a list by its name stands for several
        return ast.unparse(found[position])


@dataclass(frozen=True)
class Alteration:
    """A change of one call.

    Args:
        sites: where it is written; an expression may be written twice.
        part: :data:`OPERAND` or :data:`RESULT`, which moves ``factor`` times as far; or
            :data:`THROUGH`, by which the result moves as the operand does; or :data:`NUMBER`, which
            is replaced by ``factor``; or :data:`LAST`, by which an element that is picked more
            than once moves in the last place only.
        position: of the operand or number among the leaves of the arguments.
        factor: see above.
    """

    sites: frozenset[Site]
    part: str
    position: int = 0
    factor: float = 0.0


def writes(name: str) -> bool:
    """Whether the function of this name writes to its first argument."""
    return name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))


def _floating(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and (value.is_floating_point() or value.is_complex())
        and value.layout == torch.strided
    )


class _Watching(TorchFunctionMode):
    """Follows the calls that the user's code makes."""

    _positional = 0

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(_TORCH):
            frame = frame.f_back  # of a function or a module of PyTorch that is written in Python
        if frame is None or frame.f_code.co_filename.startswith(_GRADLINT) or name == "__get__":
            return func(*args, **kwargs)
        leaves, spec = tree_flatten((args, kwargs))
        self._positional = len(leaves) - len(tree_flatten(kwargs)[0])

        def call(values: Sequence[Any]) -> Any:
            given, named = tree_unflatten(list(values), spec)
            return func(*given, **named)

        return self.called(Site(frame.f_code, frame.f_lasti, name), leaves, call)

    def called(self, site: Site, leaves: list[Any], call: Call) -> Any:
        """A call with ``leaves``, which ``call`` makes."""
        raise NotImplementedError


class Recording(_Watching):
    """Records the calls at the sample.

    Attributes:
        calls: in their order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Recorded] = []
        self._kept = 0
        self._alive: list[Any] = []  # so that no identity is given twice

    def called(self, site: Site, leaves: list[Any], call: Call) -> Any:
        """Record it."""
        operands = {k: self._copy(leaf) for k, leaf in enumerate(leaves) if _floating(leaf)}
        name = site.name.strip("_")
        kinds = (float, *((int,) if name in _ARITHMETIC else ()))
        kinds += (bool,) if name in _VARIANCES else ()
        numbers = {k: float(leaf) for k, leaf in enumerate(leaves) if type(leaf) in kinds}
        positional = self._positional
        result = call(leaves)
        values = _values_of(name, result)
        kept = None if values is None else self._copy(values)
        self._alive += [leaves, result]
        reads = {k: id(leaves[k]) for k in operands}
        last = None
        if kept is not None and name in _PICKING and 0 in operands:
            last = _last_picked(operands[0], kept, lambda first: call([first, *leaves[1:]]))
        elif kept is not None and name in _CHOOSING and 0 in operands:
            last = _last_picked(operands[0], kept, lambda first: _chosen(first, leaves, result[1]))
        self.calls.append(Recorded(site, operands, numbers, kept, reads, last, positional))
        return result

    def _copy(self, tensor: torch.Tensor) -> torch.Tensor:
        self._kept += tensor.numel()
        if self._kept > MOST_KEPT:
            raise TooMuch
        return tensor.detach().clone()


def _values_of(name: str, result: Any) -> torch.Tensor | None:
    """The floating tensor that the function ``name`` returned, alone or with indices."""
    if name.strip("_") in _CHOOSING and isinstance(result, tuple):
        result = result[0]
    return result if _floating(result) else None


def _with_values(result: Any, values: torch.Tensor) -> Any:
    """What a function returned, with other values."""
    return type(result)((values, *result[1:])) if isinstance(result, tuple) else values


def _chosen(source: torch.Tensor, leaves: Sequence[Any], index: torch.Tensor) -> torch.Tensor:
    """The elements of ``source`` at ``index``, along the axis that is among the arguments."""
    axis = next(leaf for leaf in leaves[1:] if type(leaf) is int)
    return source.gather(axis, index) if source.dim() else source


def _last_picked(
    source: torch.Tensor, result: torch.Tensor, call: Callable[[torch.Tensor], Any]
) -> torch.Tensor | None:
    """Where in ``result`` each element of ``source`` is picked for the last time; None if none is
    picked twice."""
    numbered = torch.arange(source.numel(), dtype=torch.float64, device=source.device)
    places = call(numbered.reshape(source.shape))
    if not isinstance(places, torch.Tensor) or places.shape != result.shape:
        return None
    flat = places.detach().reshape(-1).to(torch.int64)
    order = torch.arange(len(flat), device=flat.device)
    latest = torch.full((source.numel(),), -1, dtype=torch.int64, device=flat.device)
    latest = latest.scatter_reduce(0, flat, order, reduce="amax")
    last = latest[flat] == order
    return None if bool(last.all()) else last.reshape(result.shape)


class Comparing(_Watching):
    """Marks in ``calls`` what moves, while forward runs at other values than the sample's.

    Attributes:
        lost: whether forward makes other calls there.
    """

    def __init__(self, calls: Sequence[Recorded]) -> None:
        super().__init__()
        self._calls, self._next = calls, 0
        self.lost = False

    def called(self, site: Site, leaves: list[Any], call: Call) -> Any:
        """Compare it with the call at the sample."""
        known = self._calls[self._next] if self._next < len(self._calls) else None
        self._next += 1
        if known is None or known.site != site:
            self.lost = True
            return call(leaves)
        known.moving |= {k for k, before in known.operands.items() if not _same(before, leaves[k])}
        result = call(leaves)
        values = _values_of(site.name, result)
        if known.result is not None and (values is None or not _same(known.result, values)):
            known.moving.add(-1)
        return result


def _same(before: torch.Tensor, now: Any) -> bool:
    return isinstance(now, torch.Tensor) and torch.equal(before, now.detach())


class Altered(_Watching):
    """Runs forward with one :class:`Alteration` of it."""

    def __init__(self, calls: Sequence[Recorded], alteration: Alteration) -> None:
        super().__init__()
        self._calls, self._next, self._alteration = calls, 0, alteration

    def called(self, site: Site, leaves: list[Any], call: Call) -> Any:
        """Make it, altered if that is wanted."""
        change = self._alteration
        known = self._calls[self._next] if self._next < len(self._calls) else None
        self._next += 1
        if known is None or known.site != site:
            raise RuntimeError("forward makes other calls than at the sample")
        if site not in change.sites:
            return call(leaves)
        if change.part in (OPERAND, NUMBER):
            given = list(leaves)
            given[change.position] = (
                type(leaves[change.position])(change.factor)
                if change.part == NUMBER
                else _moved(known.operands[change.position], leaves[change.position], change.factor)
            )
            return call(given)
        result = call(leaves)
        values = _values_of(site.name, result)
        if known.result is None or values is None:
            return result
        if change.part == RESULT:
            return _with_values(result, _moved(known.result, values, change.factor))
        if change.part == LAST:
            last = known.last
            held = values if last is None else torch.where(last, values, known.result)
            return _with_values(result, held)
        moved = leaves[change.position].detach() - known.operands[change.position]
        return _with_values(result, known.result + change.factor * moved)


def _moved(before: torch.Tensor, now: torch.Tensor, factor: float) -> torch.Tensor:
    return before.clone() if factor == 0.0 else before + factor * (now.detach() - before)
