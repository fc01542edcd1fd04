"""What is known about each parameter before anything runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gradlint.inputs._extents import Length
from gradlint.model.related import Bound

#: Stands for the default of a parameter that has none.
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()

#: Kinds a parameter can be. "tensor" is a floating one, "index" an integer one, "mask" boolean;
#: evidence for "any" says that it is a tensor, but not of which type.
KINDS = (
    "tensor",
    "complex",
    "index",
    "mask",
    "int",
    "float",
    "bool",
    "str",
    "shape",
    "floats",
    "tensors",
    "dict",
    "callable",
    "module",
    "dtype",
    "device",
    "none",
    "value",
)
TENSOR_KINDS = frozenset({"tensor", "complex", "index", "mask"})
#: Kinds of which there are values that can be called.
_CALLED = frozenset({"callable", "module", "value"})
#: Weight of the evidence for a tensor where None is the default: more than for any other kind and,
#: where the code asks whether the argument is None, about what a name gives (heuristic: an optional
#: factor is used once, in a product that takes numbers too).
OPTIONAL_TENSOR, SURE_TENSOR = 1.5, 3.0


@dataclass
class Evidence:
    """Everything gathered about one parameter.

    Args:
        name: its name in forward.
        passing: "positional", "varargs" or "keyword".
        default: its default, or :data:`MISSING`.
        weights: kind → weight of the evidence for it.
        ranks: rank → weight, for a tensor.
        least_rank: smallest rank that the code can work with.
        named_ranks: ranks for which the code has a case of its own: ``if x.dim() == 4``.
        values: values the code compares it with, or that a caller passes; likeliest first.
        differentiable: True when backward returns something at its position, False for a
            literal None, None when unknown.
        summed: whether backward returns a sum over all elements at its position.
        optional: whether None is allowed, as far as the code shows.
        shape: names of its axes from documentation; empty when it says nothing.
        length: number of elements it is unpacked into, for a sequence.
        members: names of the tensors in each of its elements, for a sequence of pairs; else none.
        domain: domain that the functions it is passed to need; empty when unknown.
        general: whether documentation denies that it is symmetric.
        mentioned: domains that documentation names anywhere, not clearly of this parameter.
        unit_axes: axes that call sites add with ``unsqueeze``.
        keys: string keys that the code reads from it, for a dict of tensors.
        of_tensors: whether the annotation says that its values are tensors, for a dict.
        parts: positions on its last axis that the code reads one by one, as in ``x[..., 0]``.
        spans: pairs of positions on its last axis of which the code takes the first one's element
            from the second one's.
        saved: its position among the arguments of ``save_for_backward``.
        classes: classes its annotation names.
        fields: name → evidence about it, for the fields of a named tuple or dataclass.
        kept: whether it is stored as an attribute of the context.
        has_parameters: whether the code reads its ``parameters()``.
        shape_of_tuples: its axes if it holds tuples of indices, one a row or one a column.
        stepped: slice or loop variable, as text → the axis that the code takes by it, as in
            ``x[s : s + chunk]``.
        for_each_of: the sequence for each of whose elements it has one: ``w[i] * x`` for ``i, x in
            enumerate(xs)``; empty where there is none.
        counted_by: attribute of the module that has one element for each of the sequence's, such as
            its weights; empty where there is none.
        lengths: axis → length that loops over it give it, in sizes of other parameters.
        measured: axes that a loop reads as far as their own size says.
        interleaved: axis → number of parts that forward takes in turn: ``x[0::2]``, ``x[1::2]``.
        split: axis → its size, where the code splits it: ``a, b = x.split(4, -1)``.
        indexes: whether the code indexes with its elements, or passes them as indices.
        adjacent: whether neighbouring elements bound slices: ``x[off[i] : off[i + 1]]``.
        made_tensor: whether the code makes a tensor of it that keeps its graph, for a number.
        chosen: whether its values are keys of a table in the code, some of which are known.
        signed: whether the code asks which of its elements are below zero.
        sized: whether an axis is made as long as it says, as in ``x.new_zeros(n, 3)``.
        sliced: whether the code takes the elements up to it, or counts up to it, so that it is no
            axis.
        skipped: whether the code leaves out the elements before it, of which there may be none.
        lag: whether the code goes back by it from the element that it computes, which is no less
            than one.
        above: arguments that are less than it, by what the code does.
        either_sign: whether the code takes it below zero as well as above, for a number.
        batched: whether the code indexes it behind any number of axes, as in ``x[..., 1:]``.
        bounds: that its values keep beside other arguments, sizes and numbers.
        unlike: which of its integers are never alike, as documentation says: "permutation",
            "rows" or "elements"; empty when it says nothing.
        path: whether it names a file or a folder: a number would name an open one of this process.
        read: attributes that the code reads from it.
        called: methods of it that the code calls.
        laid_among: number of axes along one of which the code lays it: ``b.view(1, -1, 1, 1)``.
        cast_to_long: whether the code makes integers of its elements as they are.
        invoked: whether the code calls the argument itself, as ``f(x)``.
        asked: whether the code asks what it is, as ``callable(f)``.
        switch: whether the code asks whether it is true, which a number is unless it is zero.
        beyond: attributes that backward reads and forward does not.
    """

    name: str
    passing: str = "positional"
    default: Any = MISSING
    weights: dict[str, float] = field(default_factory=dict)
    ranks: dict[int, float] = field(default_factory=dict)
    least_rank: int = 0
    named_ranks: set[int] = field(default_factory=set)
    values: list[Any] = field(default_factory=list)
    classes: list[type] = field(default_factory=list)
    fields: dict[str, Evidence] = field(default_factory=dict)
    differentiable: bool | None = None
    summed: bool = False
    optional: bool = False
    shape: tuple[str, ...] = ()
    length: int | None = None
    members: tuple[str, ...] = ()
    domain: str = ""
    general: bool = False
    mentioned: list[str] = field(default_factory=list)
    unit_axes: list[int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    of_tensors: bool = False
    parts: set[int] = field(default_factory=set)
    spans: set[tuple[int, int]] = field(default_factory=set)
    saved: int | None = None
    kept: bool = False
    has_parameters: bool = False
    shape_of_tuples: tuple[str, ...] = ()
    stepped: dict[str, int] = field(default_factory=dict)
    for_each_of: str = ""
    counted_by: str = ""
    lengths: dict[int, Length] = field(default_factory=dict)
    measured: set[int] = field(default_factory=set)
    interleaved: dict[int, int] = field(default_factory=dict)
    split: dict[int, int] = field(default_factory=dict)
    indexes: bool = False
    adjacent: bool = False
    made_tensor: bool = False
    chosen: bool = False
    signed: bool = False
    sized: bool = False
    sliced: bool = False
    skipped: bool = False
    lag: bool = False
    above: set[str] = field(default_factory=set)
    either_sign: bool = False
    batched: bool = False
    bounds: list[Bound] = field(default_factory=list)
    unlike: str = ""
    path: bool = False
    read: dict[str, None] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    laid_among: int = 0
    cast_to_long: bool = False
    invoked: bool = False
    asked: bool = False
    switch: bool = False
    beyond: set[str] = field(default_factory=set)

    def say(self, kind: str, weight: float) -> None:
        """Add ``weight`` to ``kind``."""
        self.weights[kind] = self.weights.get(kind, 0.0) + weight

    def rank(self, rank: int, weight: float) -> None:
        """Add ``weight`` to rank ``rank``."""
        self.ranks[rank] = self.ranks.get(rank, 0.0) + weight

    def at_least(self, rank: int) -> None:
        """Record that the code reads an axis that only a tensor of at least ``rank`` has."""
        self.least_rank = max(self.least_rank, rank)

    def suggest(self, value: Any, *, first: bool = False) -> None:
        """Add a value worth trying."""
        if all(repr(value) != repr(known) for known in self.values):
            if first:
                self.values.insert(0, value)
            else:
                self.values.append(value)

    @property
    def counts(self) -> bool:
        """Whether its values go from one, or from those of another argument, up to the size of an
        axis, that included: lengths."""
        below = [bound for bound in self.bounds if bound.less.of == self.name]
        above = [bound for bound in self.bounds if bound.more.of == self.name]
        ends = any(bound.more.axis is not None and not bound.strict for bound in below)
        begins = [bound.less.number + bound.strict for bound in above if bound.less.of is None]
        others = any(bound.less.of is not None and bound.less.axis is None for bound in above)
        return ends and (1 in begins or (others and not begins))

    @property
    def required(self) -> bool:
        """Whether it has no default and is not ``*args``."""
        return self.default is MISSING and self.passing != "varargs"

    def ordered_kinds(self) -> list[tuple[str, float]]:
        """Kinds from likely to unlikely, each with its cost (0 for the likeliest). What the code
        calls is nothing that can't be called, even where the call is not reached by forward."""
        kinds = self._all_kinds()
        called = [
            pair
            for pair in kinds
            if pair[0] in _CALLED or (pair[0] == "none" and (self.optional or not self.required))
        ]
        return called if called and self.only_called else kinds

    @property
    def only_called(self) -> bool:
        """Whether the code calls it and never asks what it is."""
        return self.invoked and not self.asked

    def _all_kinds(self) -> list[tuple[str, float]]:
        if self.path:
            return [("str", 0.0)]
        weights = {kind: weight for kind, weight in self.weights.items() if kind != "any"}
        shared = self.weights.get("any", 0.0)
        for kind in KINDS:
            if kind == "tensor" or (kind in TENSOR_KINDS and kind in weights):
                weights[kind] = shared + weights.get(kind, 0.0)
        for kind, floor in (("tensor", 0.6), ("float", 0.3), ("int", 0.2), ("bool", 0.1)):
            weights[kind] = max(weights.get(kind, 0.0), floor)
        # The floors hold where nothing is known: most arguments of operators are tensors.
        ordered = sorted(weights.items(), key=lambda item: -item[1])
        top = ordered[0][1]
        return [(kind, min(0.5 * (top - weight), 4.0)) for kind, weight in ordered if weight > 0]

    @property
    def is_likely_tensor(self) -> bool:
        """Whether a tensor is the likeliest kind."""
        return self.ordered_kinds()[0][0] in TENSOR_KINDS

    @property
    def tensorness(self) -> float:
        """Weight of the evidence that it is a tensor of any type."""
        return self.weights.get("any", 0.0) + sum(
            max(self.weights.get(kind, 0.0), 0.0) for kind in TENSOR_KINDS
        )

    @property
    def may_be_tensor(self) -> bool:
        """Whether it may well be a tensor where it is not None."""
        others = [
            weight for kind, weight in self.weights.items() if kind not in TENSOR_KINDS | {"any"}
        ]
        least = OPTIONAL_TENSOR if self.optional else SURE_TENSOR
        return self.tensorness >= least and self.tensorness > max(others, default=0.0)

    @property
    def likeliest_tensor(self) -> str:
        """The likeliest kind of tensor."""
        return next((kind for kind, _ in self.ordered_kinds() if kind in TENSOR_KINDS), "tensor")
