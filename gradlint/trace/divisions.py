"""What a forward divides by where that is zero, inputs or numbers: seen while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from gradlint.numerics.products import rms
from gradlint.ops.dispatch_mode import DispatchMode

#: ATen operators (without overloads and trailing underscores) whose result is zero exactly where
#: the elements of their one tensor are: other shapes of it, other signs, powers.
_SAME_ZEROS = frozenset(
    (
        *("view", "_unsafe_view", "unsqueeze", "squeeze", "expand", "permute", "transpose", "t"),
        *("slice", "select", "alias", "detach", "clone", "_to_copy", "index", "index_select"),
        *("gather", "unbind", "split", "diagonal", "neg", "abs", "square", "sqrt", "mul", "pow"),
        *("expm1", "log1p", "sinh", "asinh", "tan", "tanh", "atan", "erf"),
    )
)

#: ATen operators of two tensors whose result is zero exactly where one is that has zeros at all.
_PRODUCTS = frozenset(("mul", "div"))

#: ATen operators that divide, and the positions of their divisors.
_DIVIDING = {"div": 1, "reciprocal": 0, "rsqrt": 0, "addcdiv": 2, "pow": 0}

#: ATen operators whose result consists of elements of their one tensor: it is zero where one of
#: these is, and divides others.
_SELECTING = frozenset(
    (
        *("max", "min", "amax", "amin", "aminmax", "cummax", "cummin", "sort", "topk", "kthvalue"),
        *("median", "nanmedian", "mode"),
    )
)

#: ATen operators by which a forward treats quotients apart that are not finite, and zeros.
_FINITENESS = frozenset(("nan_to_num", "isnan", "isfinite", "isinf"))
_COMPARING = frozenset(("eq", "ne", "gt", "ge", "lt", "le"))

#: Bounds beyond this share of the typical element do not tell zero from its neighbours: a cutoff is
#: no guard (heuristic: guards are at 0, 1e-12 or 1e-3, cutoffs, ranges and radii at about 1).
_NEAR_ZERO = 0.1


class Divisions(DispatchMode):
    """Notes the inputs by whose zeros forward divides: by the input itself, in another shape, with
    another sign, times or over something that is not zero, or as a power, by elements selected from
    it (a running maximum), and not by what forward computes from several elements or inputs.

    Args:
        values: of the inputs, as forward gets them.

    Attributes:
        poles: positions of inputs by whose zeros something else than zero is divided.
        stretched: positions of inputs with fewer elements than the quotients: parameters that many
            elements of other tensors are divided by, and where it is 0 / 0 at every zero. So are
            elements selected from an input, which divide others; products of an input are not.
        vanishing: positions of inputs by whose zeros zero is divided, as in sin(x) / x.
        compared: positions of inputs that forward compares with numbers near zero, or with other
            tensors: quotients by their zeros may be replaced.
        looks: whether forward looks for what is not finite, which it may replace.
    """

    def __init__(self, values: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self.poles: set[int] = set()
        self.stretched: set[int] = set()
        self.vanishing: set[int] = set()
        self.compared: set[int] = set()
        self.looks = False
        self._values = list(values)
        self._known: dict[int, tuple[torch.Tensor, int]] = {}  # kept alive, so that ids stay
        self._selected: set[int] = set()
        self._multiplied: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        found = self.through(func, args, kwargs)
        name = getattr(getattr(func, "overloadpacket", None), "__name__", "").rstrip("_")
        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        if name in _FINITENESS:
            self.looks = True
        elif name in _COMPARING and len(args) > 1:
            self._compared(args)
        elif name in _DIVIDING and _divides(name, args):
            self._divided(args[_DIVIDING[name]], found)
            if name == "div" and bool(args[1].all()):
                self._derived(name, tensors, found)
        elif name in _SELECTING or name in _SAME_ZEROS or name == "div":
            self._derived(name, tensors, found)
        return found

    def _derived(self, name: str, tensors: list[torch.Tensor], found: Any) -> None:
        """Note which input the results of ``name`` have their zeros of."""
        multiplied = name in _PRODUCTS and len(tensors) > 1
        if multiplied:
            tensors = [tensor for tensor in tensors if not bool(tensor.all())]
        positions = {self._position(tensor) for tensor in tensors}
        if len(positions) != 1 or None in positions:
            return
        for one in _tensors(found):
            self._known[id(one)] = one, next(iter(positions)) or 0
            if name in _SELECTING or not self._selected.isdisjoint(map(id, tensors)):
                self._selected.add(id(one))
            if multiplied or not self._multiplied.isdisjoint(map(id, tensors)):
                self._multiplied.add(id(one))

    def _compared(self, args: tuple[Any, ...]) -> None:
        for tensor, bound in (args[:2], args[1::-1]):
            position = self._position(tensor) if isinstance(tensor, torch.Tensor) else None
            if position is not None and not _is_beyond(
                bound, _NEAR_ZERO * rms(self._values[position])
            ):
                self.compared.add(position)

    def _position(self, tensor: torch.Tensor) -> int | None:
        """Position of the input that ``tensor`` is, or was made from by :data:`_SAME_ZEROS`."""
        if id(tensor) in self._known:
            return self._known[id(tensor)][1]
        for position, value in enumerate(self._values):
            alike = tensor.shape == value.shape and tensor.dtype == value.dtype
            if alike and torch.equal(tensor, value):
                return position
        return None

    def _divided(self, divisor: Any, quotient: torch.Tensor) -> None:
        position = self._position(divisor) if isinstance(divisor, torch.Tensor) else None
        if position is None or not (quotient.is_floating_point() or quotient.is_complex()):
            return
        at_zeros = quotient[(divisor == 0).expand_as(quotient)]
        if bool(at_zeros.isinf().any()):
            self.poles.add(position)
        elif at_zeros.numel():
            self.vanishing.add(position)
            count = self._values[position].numel()
            wider = quotient.numel() > count and id(divisor) not in self._multiplied
            if wider or id(divisor) in self._selected:
                self.stretched.add(position)


def _is_beyond(bound: Any, near: float) -> bool:
    """Whether a number, or every element of a tensor, is larger in magnitude than ``near``."""
    if isinstance(bound, torch.Tensor):
        return bound.is_floating_point() and bool((bound.abs() > near).all())
    return isinstance(bound, (int, float)) and abs(bound) > near


class ZeroDivisors(DispatchMode):
    """Notes whether forward divides by a number, or by a tensor of nothing but zeros.

    Attributes:
        infinite: whether a quotient by it is infinite.
    """

    def __init__(self) -> None:
        super().__init__()
        self.infinite = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        found = self.through(func, args, kwargs)
        name = getattr(getattr(func, "overloadpacket", None), "__name__", "").rstrip("_")
        if not self.infinite and _is_zero(_divisor(name, args)):
            self.infinite = any(bool(one.isinf().any()) for one in _tensors(found))
        return found


def _divisor(name: str, args: tuple[Any, ...]) -> Any:
    """What a call of ``name`` with ``args`` divides by, a tensor or a number; None if nothing."""
    if name == "pow" and not (isinstance(args[1], (int, float)) and args[1] < 0):
        return None
    place = _DIVIDING.get(name)
    return args[place] if place is not None and len(args) > place else None


def _is_zero(divisor: Any) -> bool:
    if isinstance(divisor, torch.Tensor):
        return divisor.numel() > 0 and not bool(divisor.any())
    return isinstance(divisor, (int, float)) and divisor == 0


def _divides(name: str, args: tuple[Any, ...]) -> bool:
    """Whether a call of ``name`` with ``args`` divides by a tensor."""
    if name == "pow":
        return isinstance(args[1], (int, float)) and args[1] < 0
    return len(args) > _DIVIDING[name] and isinstance(args[_DIVIDING[name]], torch.Tensor)


def _tensors(found: Any) -> Iterator[torch.Tensor]:
    for one in found if isinstance(found, (tuple, list)) else (found,):
        if isinstance(one, torch.Tensor):
            yield one


class MakesNan(DispatchMode):
    """Notes whether an operation of forward gives NaN, as the mean of nothing does.

    Attributes:
        found: whether one did.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        made = self.through(func, args, kwargs)
        name = getattr(getattr(func, "overloadpacket", None), "__name__", "")
        if isinstance(made, torch.Tensor) and not name.startswith(("empty", "new_empty")):
            self.found |= made.is_floating_point() and bool(made.isnan().any())
        return made
