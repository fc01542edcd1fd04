"""Further samples with an optional tensor that the given inputs leave out: backward has a branch
for it that no given input reaches.

It is made as inference would make it, in a shape that the documentation gives or that is part of
the shape of another tensor. A guess that does not fit may still run, by broadcasting, so that it is
taken only where the outputs keep their shapes; where several shapes run, the first at which
backward agrees with forward, if there is one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from gradlint.inputs._attempt import Trial, agrees, process_state_restored, run
from gradlint.inputs._evidence import MISSING, Evidence
from gradlint.inputs._gather import gather
from gradlint.inputs._of_others import is_of_others
from gradlint.inputs._plan import Plan, TensorGuess
from gradlint.inputs._proposals import of_kind, ranks
from gradlint.inputs.described import ANY
from gradlint.inputs.designed import Designed, is_floating
from gradlint.inputs.designed_arguments import with_arguments
from gradlint.inputs.resized import tensors_of
from gradlint.inputs.values import Built, build
from gradlint.model.op import Op
from gradlint.model.sample import Sample, positional_names

#: Optional tensors that are made, and shapes that are tried for each, at most (heuristic: a weight,
#: a bias and a mask; a tensor of three axes has seven parts).
MOST_OPTIONALS, MOST_SHAPES = 4, 12

#: Kinds of tensors that are made. Integers mean something of their own: lengths, segments, labels.
_MADE = ("tensor", "mask")


def without_optionals(op: Op, sample: Sample, others: Sequence[Sample]) -> Iterator[Designed]:
    """``sample`` without each optional tensor that it gives: where there is no first state, no mask
    and no weight, forward and backward have code of their own.

    Args:
        op: the operator.
        sample: arguments that were given.
        others: the other samples that were given: what one of them leaves out was tried.
    """
    always = set.intersection(*(set(_given(op, one)) for one in (sample, *others)))
    values = _given(op, sample)
    for item in gather(op):
        optional = item.default is None or (item.default is MISSING and item.optional)
        if optional and item.name in always and isinstance(values[item.name], torch.Tensor):
            there = with_arguments(op, sample, {item.name: None})
            label = f"without `{item.name}`"
            yield Designed(replace(there, label=label, kind="left-out", moved=()), {})


@dataclass
class LeftOut:
    """The optional tensors that a sample leaves out.

    Args:
        op: the operator.
        sample: arguments that were given.
        others: the other samples that were given: what one of them gives is not left out.
        seed: of the values that are made.
        affords: whether the op may be called again, after so many calls made here.

    Attributes:
        forward_calls, backward_calls: that were needed to find shapes.
    """

    op: Op
    sample: Sample
    others: Sequence[Sample]
    seed: int
    affords: Callable[[int], bool]
    forward_calls: int = 0
    backward_calls: int = 0

    def made(self) -> Iterator[Designed]:
        """The sample with each of them, then with all of which one alone was taken."""
        tensors = tensors_of(self.sample)
        plain = bool(tensors) and all(is_floating(t) or not t.is_complex() for t in tensors)
        items = self._left_out() if plain else []
        if not items:
            return
        found: dict[str, torch.Tensor] = {}
        for item in items[:MOST_OPTIONALS]:
            made = self._fitting(item)
            if made is not None:
                found[item.name] = made
                yield self._with({item.name: made})
        if len(found) > 1:
            yield self._with(found)

    def _with(self, made: dict[str, torch.Tensor]) -> Designed:
        names = " and ".join(f"`{name}`" for name in made)
        sample = with_arguments(self.op, self.sample, made)
        inferred = self.sample.origin == "inferred"
        why = "given" if inferred else "left out, so gradlint made it"
        shapes = [f"{name}: {tuple(value.shape)}, {why}" for name, value in made.items()]
        label = f"with {names} {'given' if inferred else 'made by gradlint'}"
        notes = [*sample.notes, *shapes]
        return Designed(replace(sample, label=label, kind="left-out", notes=notes), {})

    def _left_out(self) -> list[Evidence]:
        """Parameters that are None in all samples, and tensors by what is known of them."""
        given = set().union(*(_given(self.op, one) for one in (self.sample, *self.others)))
        values = _given(self.op, self.sample).items()
        tensors = [name for name, value in values if isinstance(value, torch.Tensor)]
        return [
            item
            for item in self._evidence
            if item.name not in given
            and item.passing != "varargs"
            and "." not in item.name  # of an object
            and (item.default is None or item.optional)
            and item.may_be_tensor
            and item.likeliest_tensor in _MADE
            and not is_of_others(self.op, item, tensors)
        ]

    @cached_property
    def _evidence(self) -> list[Evidence]:
        return gather(self.op)

    @cached_property
    def _before(self) -> Trial:
        return self._run(self.sample)

    def _run(self, sample: Sample) -> Trial:
        with process_state_restored():
            trial = run(self.op, Built(sample.args, sample.kwargs), self._working, self.seed)
        self.forward_calls += 1
        self.backward_calls += trial.score >= 3
        return trial

    @cached_property
    def _working(self) -> str:
        """The dtype of the floating tensors of the sample."""
        dtypes = {t.dtype for t in tensors_of(self.sample) if t.is_floating_point()}
        return "float32" if torch.float32 in dtypes else "float64"

    def _fitting(self, item: Evidence) -> torch.Tensor | None:
        """A tensor for ``item`` with which forward and backward run; None if there is none."""
        first = None
        for guess, shape in itertools.islice(self._shapes(item), MOST_SHAPES):
            if not self.affords(self.forward_calls + self.backward_calls):
                break
            made, sample = self._taken(item, self._tensor(item, guess, shape))
            if sample is None:
                continue
            with process_state_restored():
                built = Built(sample.args, sample.kwargs)
                right = agrees(self.op, built, self._working, self.seed)
            self.forward_calls += 3
            self.backward_calls += 1
            if right:
                return made
            first = made if first is None else first
        return first

    def _taken(self, item: Evidence, made: torch.Tensor) -> tuple[torch.Tensor, Sample | None]:
        """``made``, and the sample with it; None where not all went as well as without it, with
        outputs of the same shapes. It is a constant where its gradient is zero or missing, unless
        backward is written to return one: then that may be the fault."""
        before = self._before
        sample = with_arguments(self.op, self.sample, {item.name: made})
        trial = self._run(sample)
        if trial.score < 5 or trial.shapes != before.shapes or trial.reduced != before.reduced:
            return made, None
        own = made.requires_grad and bool(item.differentiable)
        if trial.zero <= before.zero + own:
            return made, sample
        return self._taken(item, made.detach()) if made.requires_grad else (made, None)

    def _tensor(self, item: Evidence, guess: TensorGuess, shape: tuple[int, ...]) -> torch.Tensor:
        """Values for ``item`` of a shape, of the dtype and on the device of the other tensors."""
        axes = tuple(f"{item.name}.{place}" for place in range(len(shape)))
        sizes = tuple(zip(axes, shape, strict=True))
        plan = Plan((item.name,), (replace(guess, axes=axes),), sizes, working=self._working)
        (made,) = build(plan, self.seed, frozenset()).args
        assert isinstance(made, torch.Tensor)
        device = tensors_of(self.sample)[0].device
        return made.detach().to(device).requires_grad_(made.requires_grad)

    def _shapes(self, item: Evidence) -> Iterator[tuple[TensorGuess, tuple[int, ...]]]:
        """Guesses for ``item``, with shapes: what the documentation says and nothing else, or all
        parts of the shapes of the other tensors and of the outputs."""
        kind = item.likeliest_tensor
        guesses = [g for g, _ in of_kind(item, kind) if isinstance(g, TensorGuess)]
        if not guesses:
            return
        documented = self._documented(item)
        if documented is not None:
            yield guesses[0], documented
            return
        tensors = [t for t in tensors_of(self.sample) if is_floating(t)]
        sources = dict.fromkeys([*(tuple(t.shape) for t in tensors), *self._before.shapes])
        seen = set()
        said = [len(item.shape)] if item.shape and not ANY & set(item.shape) else []
        for rank in said or ranks(item, kind):
            guess = next((g for g in guesses if len(g.axes) == rank), guesses[0])
            for source in sources:
                for shape in itertools.combinations(source, rank):
                    if shape not in seen and 0 not in shape:
                        seen.add(shape)
                        yield guess, shape

    def _documented(self, item: Evidence) -> tuple[int, ...] | None:
        """The shape that the documentation gives, where its sizes are those of axes of tensors that
        are there."""
        given = _given(self.op, self.sample)
        known: dict[str, tuple[int, ...]] = {}
        for other in self._evidence if item.shape else ():
            value = given.get(other.name)
            if not isinstance(value, torch.Tensor):
                continue
            if other.shape == item.shape:  # "shaped like x", whatever shape x has
                return tuple(value.shape)
            bound = _bound(other.shape, value)
            if any(known.setdefault(symbol, size) != size for symbol, size in bound.items()):
                return None
        shape: list[int] = []
        for axis in item.shape:
            part = _sized(axis, known)
            if part is None:
                return None
            shape += part
        return tuple(shape) if item.shape else None


def _given(op: Op, sample: Sample) -> dict[str, object]:
    """The arguments of a sample that are not None, by name."""
    names = positional_names(op.signature, len(sample.args))
    values = {**dict(zip(names, sample.args, strict=True)), **sample.kwargs}
    return {name: value for name, value in values.items() if value is not None}


def _bound(axes: Sequence[str], value: torch.Tensor) -> dict[str, tuple[int, ...]]:
    """The size of each axis that is described, and the sizes that stand for any number of axes;
    empty where ``value`` has other axes."""
    found: dict[str, tuple[int, ...]] = {}
    for place, axis in enumerate(axes):
        if axis in ANY:
            behind = len(axes) - place - 1
            if value.dim() < place + behind:
                return {}
            found[axis] = tuple(value.shape[place : value.dim() - behind])
            rest = zip(axes[place + 1 :], value.shape[value.dim() - behind :], strict=False)
            return found | {symbol: (size,) for symbol, size in rest}
        if place >= value.dim():
            return {}
        found[axis] = (value.shape[place],)
    return found if len(axes) == value.dim() else {}


def _sized(axis: str, known: dict[str, tuple[int, ...]]) -> tuple[int, ...] | None:
    """The size of an axis that is described, or of those that it stands for; None if unknown."""
    if axis in known:
        return known[axis]
    return (int(axis[1:]),) if axis.startswith("=") else None
