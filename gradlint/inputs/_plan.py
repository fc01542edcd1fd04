"""A plan: what to pass for every parameter, with axis sizes still symbolic.

Axes are symbols (``x.0``, ``x.1`` …; ``=3`` has that size by definition). Every symbol gets a size
of its own, so that a number in an error message identifies an axis. Two axes that must agree become
one symbol. A symbol may be a sum, product or quotient of others and of integer arguments, as
documentation gives them: ``T*k``, ``n//2+1``, ``I/group_size``; it has the size that this gives.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from gradlint.base.text import short_text
from gradlint.model.related import TERM, Bound, Formula, Side, size_of

#: Sizes of the axes of a plan during the search, in order: unequal, and none that is a common
#: constant in code (2, 3, 4, 8, 16), so that a number in an error identifies an axis (heuristic).
SEARCH_SIZES = (5, 7, 6, 11, 9, 13, 10, 17, 14, 19, 15, 23, 18, 21, 22, 25)
#: Other sizes, for ops that need even sizes, powers of two, or equal ones.
OTHER_SIZES = (
    (4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34),
    (4, 8, 16, 32, 64, 4, 8, 16, 32, 64),
    (4,) * 40,
)

#: A sum, product or quotient of symbols, or a power of a number: ``2**k``.
_COMPOSED = re.compile(r"\d+(?:\*\*)?[A-Za-z_][\w.]*|\w[\w.]*(?:(?://|[-+*/])\w[\w.]*)+")
#: A part of a symbol, by a number: ``D/2``, ``dim//2``. (Of ``n//2+1`` any ``n`` has one.)
_PART = re.compile(r"([A-Za-z_][\w.]*)//?(\d+)")
#: A size that is larger is no size of a sample.
_LARGEST_COMPOSED = 4096


#: By how much less one a size grows at most, where another that follows from it would be too small.
LARGER = 6


@dataclass(frozen=True)
class TensorGuess:
    """A tensor to pass.

    Args:
        axes: one symbol an axis.
        dtype: "float", "complex", "int" or "bool".
        domain: one of :data:`gradlint.inputs.domains.DOMAINS`, or of a generator of integers; of
            booleans "mostly" or "all", where they are not true at every other place.
        grad: whether it requires grad.
        high: exclusive upper bound of integer values; 0 means the smallest size of the plan.
        layout: "" for strided, "coo" or "csr" for sparse with every other element stored.
    """

    axes: tuple[str, ...]
    dtype: str = "float"
    domain: str = "real"
    grad: bool = True
    high: int = 0
    layout: str = ""


#: Kinds of values that follow from the first tensor of a plan.
_OF_FIRST = ("shape-of", "numbers-of")


@dataclass(frozen=True, eq=False)
class ValueGuess:
    """Anything but a tensor. ``kind`` "shape-of": the shape of the plan's first tensor;
    "numbers-of": numbers from ``value`` on, one for each element of its last axis.

    Equality goes by type and text: values may be unhashable or compare in odd ways.
    """

    value: Any
    kind: str = "value"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueGuess) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, str, str]:
        kind = self.kind if self.kind in _OF_FIRST else ""
        return kind, type(self.value).__name__, short_text(self.value, 200)


@dataclass(frozen=True)
class GroupGuess:
    """A list, tuple or dict of tensors, or a named tuple or dataclass with them, or with others of
    its kind, as fields.

    Args:
        items: its elements.
        container: its type.
        keys: those of a dict.
        splice: whether the elements are passed one by one, as ``*args``.
    """

    items: tuple[TensorGuess | ValueGuess | GroupGuess, ...]
    container: type = list
    keys: tuple[str, ...] = ()
    splice: bool = False

    def tensors(self) -> Iterator[TensorGuess]:
        """Every tensor in it, in order."""
        for item in self.items:
            if isinstance(item, TensorGuess):
                yield item
            elif isinstance(item, GroupGuess):
                yield from item.tensors()

    def mapped(self, convert: Callable[[TensorGuess], TensorGuess]) -> GroupGuess:
        """The group with every tensor passed through ``convert``."""

        def walk(item: TensorGuess | ValueGuess | GroupGuess) -> Any:
            if isinstance(item, GroupGuess):
                return item.mapped(convert)
            return convert(item) if isinstance(item, TensorGuess) else item

        return replace(self, items=tuple(map(walk, self.items)))


@dataclass(frozen=True)
class ListGuess:
    """A list of Python integers about one axis: how it is cut into segments.

    Args:
        domain: "lengths" of the segments, which add up to the size of the axis, or "pointers", from
            0 to that size.
        place: position of the axis in the first floating tensor.
    """

    domain: str
    place: int

    def values(self, size: int) -> list[int]:
        """The integers for an axis of ``size``: segments of unequal lengths, one of them single."""
        lengths = [2, 1, size - 3] if size > 3 else [2, 1] if size == 3 else [1] * size
        if self.domain == "lengths":
            return lengths
        return list(itertools.accumulate(lengths, initial=0))


@dataclass(frozen=True)
class Omitted:
    """The parameter is not passed; its default holds."""


Guess = TensorGuess | ValueGuess | GroupGuess | ListGuess | Omitted


@dataclass(frozen=True)
class Related:
    """How the size of an axis follows from those of others.

    Args:
        formula: the size.
        bases: the symbols of the sizes in the formula.
    """

    formula: Formula
    bases: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """One guess a parameter, plus the sizes that are no longer free.

    Args:
        names: parameter names.
        guesses: one a parameter.
        fixed: symbol → size, for axes that must have that size.
        pool: sizes for the free symbols; empty for the smallest that are unequal within
            each tensor.
        working: dtype of the floating tensors.
        cost: how far it is from the likeliest plan (used by the search only).
        shares: each parameter's share of that cost.
        related: symbol → how its size follows from others.
        bounds: that values keep, of parameters by name.
        unlike: parameters of which some integers are never alike, and which of them.
        beyond: parameters that are objects of which backward reads other attributes than forward.
    """

    names: tuple[str, ...]
    guesses: tuple[Guess, ...]
    fixed: tuple[tuple[str, int], ...] = ()
    pool: tuple[int, ...] = SEARCH_SIZES
    working: str = "float64"
    cost: float = field(default=0.0, compare=False)
    shares: tuple[float, ...] = field(default=(), compare=False)
    related: tuple[tuple[str, Related], ...] = ()
    bounds: tuple[Bound, ...] = ()
    unlike: tuple[tuple[str, str], ...] = ()
    beyond: frozenset[str] = frozenset()

    def guess(self, name: str) -> Guess:
        """The guess of parameter ``name``."""
        return self.guesses[self.names.index(name)]

    def tensors(self) -> Iterator[tuple[str, TensorGuess]]:
        """Every tensor with its parameter's name, those in groups included."""
        for name, guess in zip(self.names, self.guesses, strict=True):
            if isinstance(guess, TensorGuess):
                yield name, guess
            elif isinstance(guess, GroupGuess):
                for item in guess.tensors():
                    yield name, item

    def cut(self, guess: ListGuess) -> tuple[str, int]:
        """The name of the first floating tensor, and the size of its axis that ``guess`` cuts."""
        sizes = self._sizes
        for name, tensor in self.tensors():
            if tensor.dtype == "float" and tensor.axes:
                return name, sizes[tensor.axes[min(guess.place, len(tensor.axes) - 1)]]
        return "", 0

    def symbols(self) -> list[str]:
        """Symbols in order of appearance."""
        return list(dict.fromkeys(axis for _, guess in self.tensors() for axis in guess.axes))

    def sizes(self) -> dict[str, int]:
        """Symbol → size: fixed, or else from the pool without the sizes that are fixed."""
        return dict(self._sizes)

    @cached_property
    def _sizes(self) -> dict[str, int]:
        sizes = self._free_sizes() if self.pool else self._smallest_sizes()
        composed = [symbol for symbol in sizes if _COMPOSED.fullmatch(symbol)]
        if not composed:
            return sizes
        return _with_related(self._composed(sizes, composed), self.relations(list(sizes)))

    def _composed(self, sizes: dict[str, int], composed: list[str]) -> dict[str, int]:
        """``sizes`` where those of sums, products and quotients follow from the others. What is
        divided is a multiple: ``I`` has the size of ``I/k``, times k, and ``D/2`` an even ``D``."""
        fixed = dict(self.fixed)
        known = dict(sizes)
        for name, guess in zip(self.names, self.guesses, strict=True):
            if isinstance(guess, ValueGuess) and type(guess.value) is int and name not in known:
                known[name] = guess.value
        # What no axis has alone, the k of "2*k+1" or the b of "N/b", is small, and never one.
        alone = dict.fromkeys(term for symbol in composed for term in TERM.findall(symbol))
        left = (term for term in alone if term not in known and not fixed.keys() & {term})
        known |= dict(zip(left, itertools.count(2)))
        for symbol in composed:
            whole, _, divisor = symbol.partition("/")
            if divisor in known and whole in sizes and whole not in fixed and known[divisor] > 0:
                known[whole] = sizes[whole] = sizes[symbol] * known[divisor]
        for whole, number in _divided(composed).items():
            if whole in sizes and whole not in fixed and sizes[whole] % number:
                least = sizes[whole] - sizes[whole] % number + number
                multiples = range(least, _LARGEST_COMPOSED + 1, number)
                free = (size for size in multiples if size not in sizes.values())
                known[whole] = sizes[whole] = next(free, sizes[whole])
        for symbol in composed:
            size = _evaluated(symbol, known) if symbol not in fixed else None
            if size is not None and 0 < size <= _LARGEST_COMPOSED:
                sizes[symbol] = size
        return self._apart(sizes, composed)

    def _apart(self, sizes: dict[str, int], composed: list[str]) -> dict[str, int]:
        """``sizes`` with free ones that are by chance those of ``composed`` axes exchanged: axes of
        one size are taken for one."""
        fixed = dict(self.fixed)
        terms = set(TERM.findall(" ".join(composed)))
        for symbol in sizes:
            free = symbol[0] != "=" and symbol not in {*composed, *fixed, *terms}
            if free and any(sizes[symbol] == sizes[other] for other in composed):
                taken = set(sizes.values())
                unused = (size for size in (self.pool or range(2, 99)) if size not in taken)
                sizes[symbol] = next(unused, sizes[symbol])
        return sizes

    def composed(self) -> dict[str, frozenset[str]]:
        """Symbols of sums, products and quotients → the symbols that their sizes follow from."""
        known = set(self.symbols())
        return {
            symbol: frozenset(TERM.findall(symbol)) & known
            for symbol in known
            if _COMPOSED.fullmatch(symbol)
        }

    def _free_sizes(self) -> dict[str, int]:
        fixed = dict(self.fixed)
        taken = set(fixed.values())
        taken |= {int(symbol[1:]) for symbol in self.symbols() if symbol.startswith("=")}
        if len(set(self.pool)) == 1:
            taken = set()
        # A plan of very many axes uses the sizes again.
        free = itertools.cycle([size for size in self.pool if size not in taken] or [3])
        sizes: dict[str, int] = {}
        symbols = self._by_rank()
        related = self.relations(symbols)
        for symbol in symbols:
            if symbol.startswith("="):
                sizes[symbol] = int(symbol[1:])
            elif symbol not in related:
                sizes[symbol] = fixed[symbol] if symbol in fixed else next(free)
        self._within_bounds(sizes, related)
        if related and len(set(self.pool)) > 1:
            self._in_order(sizes, related)
            self._apart_from_related(sizes, related, [s for s in self.pool if s not in taken])
        return _with_related(sizes, related)

    def relations(self, symbols: list[str]) -> dict[str, Related]:
        """Those of :attr:`related` that hold, in an order in which each follows from those before:
        of symbols that are there, and have no other size."""
        fixed = dict(self.fixed)
        found = {
            symbol: rule
            for symbol, rule in self.related
            if symbol in symbols
            and symbol not in fixed
            and not _COMPOSED.fullmatch(symbol)
            and set(rule.bases) <= set(symbols)
        }
        ordered: dict[str, Related] = {}
        while ready := [
            symbol
            for symbol, rule in found.items()
            if symbol not in ordered and all(b in ordered or b not in found for b in rule.bases)
        ]:
            ordered.update((symbol, found[symbol]) for symbol in ready)
        return ordered

    def sizes_of_relations(self) -> Iterator[tuple[str, int]]:
        """Symbols of :attr:`related` that no tensor has, with the sizes that follow."""
        sizes = self.sizes()
        for symbol, rule in self.related:
            if symbol not in sizes and set(rule.bases) <= set(sizes):
                yield symbol, rule.formula.at([sizes[base] for base in rule.bases])

    def _within_bounds(self, sizes: dict[str, int], related: dict[str, Related]) -> None:
        """Exchange free sizes that are in the wrong order: "no more places than items, K <= M"."""
        held = {*dict(self.fixed), *related, *(b for rule in related.values() for b in rule.bases)}
        for bound in self.bounds:
            less, more = (self._symbol(side) for side in (bound.less, bound.more))
            free = less in sizes and more in sizes and not {less, more} & held
            if free and "=" not in less[:1] + more[:1] and sizes[less] > sizes[more]:
                sizes[less], sizes[more] = sizes[more], sizes[less]

    def _symbol(self, side: Side) -> str:
        """The symbol of the axis whose size ``side`` is; empty where it is none."""
        if not isinstance(side.of, str) or side.axis is None or side.of not in self.names:
            return ""
        guess = self.guess(side.of)
        known = isinstance(guess, TensorGuess) and side.axis < len(guess.axes)
        return guess.axes[side.axis] if known else ""  # type: ignore[union-attr]

    def _in_order(self, sizes: dict[str, int], related: dict[str, Related]) -> None:
        """Exchange free sizes where another would be less than two, or enlarge them: a filter is
        shorter than what it slides over."""
        for rule in related.values():
            bases = [base for base in rule.bases if base in sizes and base not in dict(self.fixed)]
            if len(bases) < len(rule.bases) or rule.formula.at([sizes[b] for b in bases]) > 1:
                continue
            now = [sizes[base] for base in bases]
            larger = ([now[0] + more, *now[1:]] for more in range(1, LARGER))
            for order in (*itertools.permutations(now), *larger):
                if rule.formula.at(order) > 1:
                    sizes.update(zip(bases, order, strict=True))
                    break

    def _apart_from_related(
        self, sizes: dict[str, int], related: dict[str, Related], pool: list[int]
    ) -> None:
        """Give free axes other sizes where a related one would have the size of another axis."""
        fixed = dict(self.fixed)
        free = [s for s in sizes if s not in fixed and not s.startswith("=")]
        bases = {base for rule in related.values() for base in rule.bases}
        kept = [size for symbol, size in sizes.items() if symbol in bases or symbol not in free]
        taken = {
            *kept,
            *(size for s, size in _with_related(sizes, related).items() if s in related),
        }
        left = iter([size for size in pool if size not in taken])
        for symbol in free:
            if symbol not in bases:
                sizes[symbol] = next(left, sizes[symbol])

    def _by_rank(self) -> list[str]:
        """Symbols, those of tensors with more axes first: they get the smaller sizes."""
        ranks: dict[str, int] = {}
        for _, guess in self.tensors():
            for axis in guess.axes:
                ranks[axis] = max(ranks.get(axis, 0), len(guess.axes))
        # Matrices and vectors keep their order: nothing there gets large.
        return sorted(ranks, key=lambda axis: -max(ranks[axis], 2))

    def _smallest_sizes(self) -> dict[str, int]:
        """The smallest sizes from 2 on that are unequal within each tensor, and unequal to those
        of other axes at the same place in other tensors."""
        sizes = dict(self.fixed)
        sizes.update((s, int(s[1:])) for s in self.symbols() if s.startswith("="))
        related = self.relations(self.symbols())
        for symbol in self.symbols():
            if symbol not in sizes and symbol not in related:
                shapes = [guess.axes for _, guess in self.tensors()]
                taken = {sizes.get(axis) for shape in shapes if symbol in shape for axis in shape}
                places = {shape.index(symbol) for shape in shapes if symbol in shape}
                taken |= {sizes.get(shape[p]) for shape in shapes for p in places if p < len(shape)}
                sizes[symbol] = next(size for size in range(2, 99) if size not in taken)
        return _with_related(sizes, related)

    def changed(self, name: str, guess: Guess, cost: float = 0.0, share: float = 0.0) -> Plan:
        """The plan with another guess for ``name``, costing ``cost`` more."""
        index = self.names.index(name)
        guesses = (*self.guesses[:index], guess, *self.guesses[index + 1 :])
        shares = self.shares
        if shares:
            shares = (*shares[:index], share, *shares[index + 1 :])
        return replace(self, guesses=guesses, cost=self.cost + cost, shares=shares)

    def renamed(self, rename: Callable[[str], str], cost: float = 0.0) -> Plan:
        """The plan with every axis symbol passed through ``rename``."""

        def renamed(axis: str) -> str:
            new = rename(axis)
            if new == axis and _COMPOSED.fullmatch(axis):
                return TERM.sub(lambda term: rename(term[0]).removeprefix("="), axis)
            return new

        def tensor(guess: TensorGuess) -> TensorGuess:
            return replace(guess, axes=tuple(renamed(axis) for axis in guess.axes))

        return replace(
            self.mapped(tensor),
            fixed=tuple({rename(a): n for a, n in self.fixed}.items()),
            cost=self.cost + cost,
            related=tuple(self._renamed_relations(rename)),
        )

    def _renamed_relations(self, rename: Callable[[str], str]) -> Iterator[tuple[str, Related]]:
        """Relations between renamed axes, without those between axes that have become one."""
        for symbol, rule in self.related:
            bases = tuple(map(rename, rule.bases))
            if rename(symbol) not in bases:
                yield rename(symbol), replace(rule, bases=bases)

    def following(self, symbol: str, rule: Related, cost: float = 0.0) -> Plan:
        """The plan in which the size of ``symbol`` follows from others."""
        related = tuple(item for item in self.related if item[0] != symbol)
        fixed = tuple(item for item in self.fixed if item[0] != symbol)
        added = (*related, (symbol, rule))
        return replace(self, fixed=fixed, related=added, cost=self.cost + cost)

    def mapped(self, convert: Callable[[TensorGuess], TensorGuess]) -> Plan:
        """The plan with every tensor, those in groups included, passed through ``convert``."""

        def walk(guess: Guess) -> Guess:
            if isinstance(guess, TensorGuess):
                return convert(guess)
            return guess.mapped(convert) if isinstance(guess, GroupGuess) else guess

        return replace(self, guesses=tuple(walk(guess) for guess in self.guesses))

    def tied(self, first: str, second: str, cost: float = 0.0) -> Plan:
        """The plan with two axes made one (``first``'s symbol stays)."""
        return self.renamed(lambda axis: first if axis == second else axis, cost)

    def sized(self, symbol: str, size: int, cost: float = 0.0) -> Plan:
        """The plan with ``symbol`` held at ``size``."""
        fixed = dict(self.fixed)
        fixed[symbol] = size
        return replace(self, fixed=tuple(fixed.items()), cost=self.cost + cost)

    def arguments_key(self) -> object:
        """What the op is given: equal for plans that differ only in the names of axes."""
        return self._arguments_key

    @cached_property
    def _arguments_key(self) -> object:
        sizes = self._sizes

        def seen(guess: Guess) -> object:
            if isinstance(guess, TensorGuess):
                shape = tuple(sizes[axis] for axis in guess.axes)
                return shape, replace(guess, axes=())
            if isinstance(guess, GroupGuess):
                items = tuple(seen(item) for item in guess.items)
                return items, guess.container, guess.keys, guess.splice
            return guess

        return self.working, tuple(seen(guess) for guess in self.guesses)

    def squares(self) -> int:
        """How many tensors have the same symbol on two axes."""
        return self._squares

    @cached_property
    def _squares(self) -> int:
        return sum(len(set(guess.axes)) < len(guess.axes) for _, guess in self.tensors())


def _evaluated(text: str, known: Mapping[str, int]) -> int | None:
    """The value of a sum, product, quotient or power; None where a term in it is not known."""
    spelled = re.sub(r"^(\d+)(?=[A-Za-z_])", r"\1*", text)  # 2d is 2 * d
    try:
        return size_of(spelled, known)
    except ValueError:
        return None


def _divided(composed: list[str]) -> dict[str, int]:
    """Symbol → of what it must be a multiple, where a part of it by a number is an axis."""
    found: dict[str, int] = {}
    for symbol in composed:
        part = _PART.fullmatch(symbol)
        if part and int(part[2]) > 0:
            found[part[1]] = math.lcm(found.get(part[1], 1), int(part[2]))
    return found


def _with_related(sizes: dict[str, int], related: dict[str, Related]) -> dict[str, int]:
    """``sizes`` with those that follow from them; at least one element."""
    found = dict(sizes)
    for symbol, rule in related.items():
        found[symbol] = max(rule.formula.at([found[base] for base in rule.bases]), 1)
    return found


def axes(name: str, rank: int) -> tuple[str, ...]:
    """Fresh symbols for the axes of ``name``."""
    return tuple(f"{name}.{index}" for index in range(rank))


def describe(plan: Plan) -> str:
    """The arguments of a plan in one line, e.g. ``x: float (4, 5), dim=-1``."""
    sizes = plan.sizes()

    def tensor(guess: TensorGuess) -> str:
        return f"{guess.dtype} ({', '.join(str(sizes[axis]) for axis in guess.axes)})"

    parts = []
    for name, guess in zip(plan.names, plan.guesses, strict=True):
        if isinstance(guess, TensorGuess):
            parts.append(f"{name}: {tensor(guess)}")
        elif isinstance(guess, GroupGuess):
            inner = map(tensor, guess.tensors())
            parts.append(f"{name}: [{', '.join(inner)}]")
        elif isinstance(guess, ListGuess):
            parts.append(f"{name}={guess.values(plan.cut(guess)[1])}")
        elif not isinstance(guess, Omitted):
            parts.append(f"{name}={short_text(guess.value, 30)}")
    return ", ".join(parts)
