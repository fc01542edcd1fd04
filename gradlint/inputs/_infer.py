"""Samples for an op that comes with none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import torch

from gradlint.base.text import short_text
from gradlint.inputs._attempt import Trial, attempt, process_state_restored
from gradlint.inputs._evidence import MISSING
from gradlint.inputs._gather import gather
from gradlint.inputs._plan import (
    Guess,
    ListGuess,
    Plan,
    TensorGuess,
    ValueGuess,
    describe,
)
from gradlint.inputs._proposals import propose
from gradlint.inputs._refine import refine
from gradlint.inputs._search import Search
from gradlint.inputs._suggested import Suggested, other_guesses
from gradlint.inputs._variants import variants
from gradlint.inputs.domains import CONFINED, DOMAINS
from gradlint.inputs.needed import Lacking
from gradlint.inputs.not_found import MOST_SHOWN, NoInputsFound, line_to_add
from gradlint.inputs.stand_ins import closures, with_bound_closures
from gradlint.inputs.values import Built, build
from gradlint.model.op import Op
from gradlint.model.related import LETTERS, Bound, RelatedAxis
from gradlint.model.sample import Sample

#: Times that values are drawn again where a gradient vanishes, and where no output is finite, which
#: leaves nothing to judge (heuristic).
REDRAWN, REDRAWN_FINITE = 4, 12

#: Score of inputs at which forward runs and outputs are not finite.
NOT_FINITE = 2

#: A note where better inputs, or more of them, may exist.
CUT_SHORT = (
    "the search for inputs was cut short after {:.0f} s: use --inputs if these are unsuitable"
)


def infer(op: Op, seed: int = 0, held: Mapping[str, Any] = MappingProxyType({})) -> list[Sample]:
    """Samples for ``op``, found by reading its code and trying.

    Args:
        op: the operator.
        seed: seed of the values; the same seed gives the same samples.
        held: objects to pass for some of the parameters.

    Returns:
        The main sample, labelled "inferred", and at most three variants. ``notes`` say what was
        inferred, ``domains`` where the values were drawn from.

    Raises:
        NoInputsFound: forward raised on everything that was tried.
        Lacking: it did, since it needs something else that is not here.
    """
    with process_state_restored():
        evidence = gather(op, held)
        search = Search(op, evidence, propose(op, evidence), seed)
        found = search.run()
        if found is None:
            failed = NoInputsFound(
                _telling_failures(search.failures),
                line_to_add(evidence, op.kind == "function"),
                search.attempts,
            )
            # Where there is a GPU, it takes inputs that are on it, or made by the user.
            if search.need and not (search.need.kind == "cuda" and torch.cuda.is_available()):
                raise Lacking(search.need, failed)
            raise failed
        plan, trial = refine(search, found)
        trial = _drawn_again(search, plan, _finite_if_drawn_again(search, plan, trial))
        samples = [_sample("inferred", search, plan, trial)]
        for label, other, outcome in variants(search, plan, trial):
            variant = _sample(label, search, other, outcome)
            moved = () if label.startswith("where") else (re.split("[= ]", label)[0],)
            samples.append(replace(variant, moved=moved))
    if any(True for sample in samples for _ in closures(sample.args)):
        op.call = with_bound_closures(op.call)
    if search.cut_short:
        samples[0].notes.append(CUT_SHORT.format(search.wall_s))
    return samples


def _finite_if_drawn_again(search: Search, plan: Plan, trial: Trial) -> Trial:
    """``trial``, or one with other values where integers or masks were drawn at which outputs are
    not finite: labels that fit into no sequence, rows that are masked. ``search`` keeps the seed of
    the values."""
    drawn = any(guess.dtype in ("int", "bool") for _, guess in plan.tensors())
    for more in range(1, REDRAWN_FINITE + 1):
        if not drawn or trial.score != NOT_FINITE or search.out_of_time:
            break
        other = attempt(search.op, plan, search.seed + more, search.keywords)
        if other.score > NOT_FINITE:
            search.seed += more
            return other
    return trial


def _drawn_again(search: Search, plan: Plan, trial: Trial) -> Trial:
    """``trial``, or one with other values where integers were drawn at which a gradient vanishes:
    nodes without neighbours, rows that are not picked. ``search`` keeps the seed of the values."""
    drawn = any(guess.dtype == "int" for _, guess in plan.tensors())
    for more in range(1, REDRAWN + 1):
        if not (drawn and trial.score >= 4 and trial.vanishing) or search.out_of_time:
            break
        seed = search.seed + more
        other = attempt(search.op, plan, seed, search.keywords)
        if other.score >= trial.score and other.vanishing < trial.vanishing:
            search.seed = seed
            return other
    return trial


def _sample(label: str, search: Search, plan: Plan, trial: Trial) -> Sample:
    built = build(plan, search.seed, search.keywords)
    guesses = [guess for _, guess in plan.tensors()]
    domains = {
        name: _domain(guess)
        for name, guess in zip(_tensor_names(search, built, plan), guesses, strict=True)
        if guess.dtype in ("float", "int")
    }
    held = frozenset(
        (number, position)
        for number, (_, guess) in enumerate(plan.tensors())
        for position, axis in enumerate(guess.axes)
        if axis in search.held
    )
    notes = _notes(search, plan, trial)

    def otherwise() -> Iterator[Sample]:
        for other, outcome, changed in other_guesses(search, plan, trial):
            made = _sample(label, search, other, outcome)
            made.notes.insert(0, _why(changed))
            yield made

    return Sample(
        label,
        "inferred",
        built.args,
        built.kwargs,
        notes,
        domains,
        held,
        otherwise=otherwise,
        related=tuple(_related(plan)),
        bounds=tuple(_bounds(plan)),
        unlike=tuple(_unlike(plan)),
        increasing=tuple(
            number
            for number, (_, guess) in enumerate(plan.tensors())
            if guess.dtype == "float" and guess.domain == "ordered"
        ),
        narrowed=tuple(search.narrowed(plan)),
    )


def _related(plan: Plan) -> Iterator[RelatedAxis]:
    """Axes whose sizes follow from others."""
    places: dict[str, list[tuple[int, int]]] = {}
    for number, (_, guess) in enumerate(plan.tensors()):
        for position, axis in enumerate(guess.axes):
            places.setdefault(axis, []).append((number, position))
    for symbol, rule in plan.relations(plan.symbols()).items():
        bases = tuple(tuple(places[base]) for base in rule.bases)
        for place in places[symbol]:
            yield RelatedAxis(place, rule.formula, bases)


def _bounds(plan: Plan) -> Iterator[Bound]:
    """The bounds of the plan, of tensors by their position."""
    names = [name for name, _ in plan.tensors()]
    for bound in plan.bounds:
        sides = (bound.less, bound.more)
        if all(side.of is None or names.count(str(side.of)) == 1 for side in sides):
            less, more = (
                side if side.of is None else replace(side, of=names.index(str(side.of)))
                for side in sides
            )
            yield Bound(less, more, bound.strict)


def _unlike(plan: Plan) -> Iterator[tuple[int, str]]:
    """The tensors of which some integers are never alike, by their position."""
    known = dict(plan.unlike)
    for number, (name, guess) in enumerate(plan.tensors()):
        if guess.dtype == "int" and name in known:
            yield number, known[name]


def _why(changed: Sequence[Suggested]) -> str:
    """What was guessed otherwise, and what suggests it."""
    parts = [
        f"`{item.name}`: {_domain(TensorGuess((), domain=item.domain))} ({item.reason})"
        for item in changed
    ]
    said = "guessed otherwise, since a gradient is wrong at other "
    return said + ("values: " + ", ".join(parts) if parts else "shapes, which forward broadcasts")


def _tensor_names(search: Search, built: Built, plan: Plan) -> list[str]:
    """Names of the tensors of a plan, those of the elements of a group in full."""
    made = Sample("", "inferred", built.args, built.kwargs)
    full = [name for name, _ in made.named_tensors(search.op.signature)]
    plain = [name for name, _ in plan.tensors()]
    matching = len(full) == len(plain) and all(map(str.startswith, full, plain))
    return full if matching else plain


def _domain(guess: TensorGuess) -> str:
    if guess.dtype == "int":
        return {
            "permutation": "a permutation along the last axis",
            "offsets": "increasing from 0",
            "pointers": "pointers, increasing from 0",
            "increasing": "integers that increase along the last axis",
            "ancestors": "positions of parents, each before its children",
            "sizes": "sizes",
        }.get(guess.domain, guess.domain if "inverse" in guess.domain else "indices")
    if guess.dtype == "bool":
        return {"mostly": "nearly all true", "all": "all true"}.get(guess.domain, guess.domain)
    return {**DOMAINS, **CONFINED}.get(guess.domain, guess.domain)


def _notes(search: Search, plan: Plan, trial: Trial) -> list[str]:
    """What was inferred, in words."""
    notes = list(dict.fromkeys(_tensor_notes(plan)))  # members of a list are often alike
    for name, value in zip(plan.names, plan.guesses, strict=True):
        if isinstance(value, ListGuess):
            owner, size = plan.cut(value)
            kind = "bounds" if value.domain == "pointers" else "lengths"
            notes.append(f"{name} = {value.values(size)}, {kind} of segments of {owner}")
        chosen = isinstance(value, ValueGuess) and value.kind != "default"
        if chosen and search.evidence[name].default is MISSING:
            notes.append(f"{name} = {_value(value)}, chosen: it has no default")
    if plan.working != "float64":
        notes.append(f"in {plan.working}: the op refused float64")
    if trial.score == 3 and trial.failure is not None:
        notes.append(f"backward raises: {_one_line(str(trial.failure))}")
    elif trial.score == NOT_FINITE:
        notes.append("outputs are not finite in any domain that was tried")
    elif trial.score == 1:
        notes.append("no floating output depends on the inputs")
    return notes


def _tensor_notes(plan: Plan) -> Iterator[str]:
    """Shapes, and what is special about them: types, domains, axes that must agree."""
    sizes = plan.sizes()
    related = plan.relations(plan.symbols())
    places = {
        axis: f"axis {index} of {name}"
        for name, guess in reversed(list(plan.tensors()))
        for index, axis in enumerate(guess.axes)
    }
    first: dict[str, tuple[str, int]] = {}
    for name, guess in plan.tensors():
        ties = []
        for index, axis in enumerate(guess.axes):
            if axis in first:
                other, where = first[axis]
                if (other, where) == (name, index):
                    continue  # a member of a list like the one before
                owner = "" if other == name else f" of {other}"
                ties.append(f"axis {index} tied to axis {where}{owner}")
            elif axis.startswith("=") or axis in dict(plan.fixed):
                ties.append(f"axis {index} of size {sizes[axis]}")
            elif axis in related:
                bases = zip(LETTERS, related[axis].bases, strict=False)
                words = " and ".join(f"{letter} is the size of {places[b]}" for letter, b in bases)
                ties.append(f"axis {index} of size {related[axis].formula.text}, where {words}")
        for index, axis in enumerate(guess.axes):
            first.setdefault(axis, (name, index))
        shape = ", ".join(str(sizes[axis]) for axis in guess.axes)
        parts = [f"{name}: ({shape}{',' if len(guess.axes) == 1 else ''})"]
        if guess.dtype != "float":
            parts.append({"int": "integers", "bool": "booleans"}.get(guess.dtype, guess.dtype))
        if guess.dtype == "int" or guess.domain != "real":
            parts.append(_domain(guess))
        if len(parts) > 1 or ties:
            yield ", ".join([*parts, *ties])


def _value(guess: Guess) -> str:
    if not isinstance(guess, ValueGuess):
        return ""
    if guess.kind == "shape-of":
        return "the shape of the first tensor"
    if guess.kind == "numbers-of":
        return "numbers, one for each element of the last axis of the first tensor"
    name = getattr(guess.value, "__name__", "")
    return f"{name} (a stand-in)" if callable(guess.value) and name else short_text(guess.value)


def _telling_failures(failures: list[tuple[Plan, Trial]]) -> list[tuple[str, str]]:
    """Arguments and errors, one per kind of error; those under which most code ran first."""
    best: dict[str, tuple[tuple[int, ...], int, Plan, str]] = {}
    for order, (plan, trial) in enumerate(failures):
        if trial.failure is None:
            continue
        text = _one_line(str(trial.failure))
        key = "".join(character for character in text if not character.isdigit())
        if key not in best or trial.progress > best[key][0]:
            best[key] = trial.progress, -order, plan, text
    ordered = sorted(best.values(), key=lambda item: item[:2], reverse=True)
    return [(describe(plan), text) for _, _, plan, text in ordered[:MOST_SHOWN]]


def _one_line(text: str, limit: int = 200) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
