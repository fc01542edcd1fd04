"""Moves that draw values from another domain, where an error or a failed condition asks for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

import torch

from gradlint.inputs._frames import FailedAttempt
from gradlint.inputs._moves import with_rank
from gradlint.inputs._plan import Plan, TensorGuess, ValueGuess
from gradlint.inputs.domains import DOMAINS, OF_SQUARES, worded

#: Domain → what a condition on values contains that holds only there. Matched against its text, in
#: which the names of parameters stand as written.
_STRUCTURES = (
    ("orthogonal", r"@.*\.(?:m?[TH]|t\(\)|transpose\b).*eye|eye.*@"),
    ("lengths", r"norm\(.*\b(?:ones|1\.?0?)\b|\.(?:square\(\)|pow\(2\))\.sum\(.*\b(?:ones|1)\b"),
    ("rows", r"\.sum\(.*\.sum\(|\.sum\(.*\b(?:ones|1\.?0*)\b|\bsum\(.*\bones"),
    (
        "ordered",
        r"\[\.*,? ?1:\].*\[\.*,? ?:-1\]|\[\.*,? ?:-1\].*\[\.*,? ?1:\]|diff\(|sort\(|sorted\(",
    ),
    ("spd", r"(?:allclose|equal|==|-).*\.(?:m?[TH]|t\(\)|transpose\(|adjoint\()"),
    ("triu", r"\.triu\(|torch\.triu"),
    ("tril", r"\.tril\(|torch\.tril"),
    ("small", r"abs\(.*<=? ?1\b|>=? ?-1\b"),
    ("unit", r"<=? ?1(?:\.0)?\b|> ?1(?:\.0)?\b"),
    ("positive", r">=? ?0\b|<=? ?0\b"),
)
#: Domains of integers that a condition may ask for, the likeliest first.
_OF_INTEGERS = ("increasing", "pointers", "offsets", "permutation", "sizes", "ancestors")
#: Domains of numbers of which indices are made, by rounding or scaling.
_OF_INDICES = ("positive", "unit", "small")
#: Bounds of segments where there must be more elements than these: fewer than any axis is long.
_SEGMENTS = 3
#: What it costs to follow a word or structure, to try a domain that nothing asks for, and each
#: further one (heuristic: dearer than a move that an error text asks for in numbers).
_ASKED, _UNASKED, _STEP = 0.2, 0.7, 0.08


def from_domains(failed: FailedAttempt) -> Iterator[Plan]:
    """Plans that draw the values which the error or condition is about from other domains."""
    text = failed.failure.text
    tests = [
        (ast.unparse(test), failed.named(test, frame)) for test, _, frame in failed.conditions()
    ]
    asked = worded(text)
    for test, _ in tests:
        asked += [domain for domain, pattern in _STRUCTURES if re.search(pattern, test)]
    asked = list(dict.fromkeys(asked))
    named = [name for _, names in tests for name in names]
    if _on_integers(failed):
        named = [name for name, guess in failed.plan.tensors() if guess.dtype == "int"]
    floating = _floating(failed, named)
    yield from _sparse(failed, floating, [test for test, _ in tests])
    yield from _asked(failed, floating, asked)
    if _on_results(failed):
        # What is computed of all of them is positive where all of them are.
        for step, domain in enumerate(asked):
            cost = _ASKED + _STEP * (step + 1)
            yield from _together(failed.plan, _floating_tensors(failed), domain, cost)
    yield from _fewer_segments(failed)
    if re.search(r"index -?\d+ is out of bounds|index out of range", text):
        # Indices may be made of numbers, which are rounded: of a delay, or of a position.
        for step, domain in enumerate(_OF_INDICES):
            for name in floating or _floating_tensors(failed):
                changed = with_domain(failed.plan, name, domain, _UNASKED + _STEP * step)
                if changed is not None:
                    yield changed
    if tests:
        yield from _integers(failed, named)
        yield from _masks(failed, [test for test, _ in tests])
        yield from _permutations(failed, [test for test, _ in tests])
        if not _on_integers(failed) and not _about_shapes([test for test, _ in tests]):
            yield from _unasked(failed, floating, asked)


def with_domain(plan: Plan, name: str, domain: str, cost: float) -> Plan | None:
    """The plan with the values of ``name`` from ``domain``, square where the domain asks for it;
    None where it is no floating tensor, or is so already."""
    guess = plan.guess(name)
    if not isinstance(guess, TensorGuess) or guess.dtype != "float" or guess.domain == domain:
        return None
    if domain not in OF_SQUARES:
        if domain in ("rows", "lengths", "ordered", "logs", "ball") and not guess.axes:
            return None
        return plan.changed(name, replace(guess, domain=domain), cost)
    if len(guess.axes) < 2:
        plan = with_rank(plan, name, 2, 0.1)
        guess = plan.guess(name)
        assert isinstance(guess, TensorGuess)
    plan = plan.changed(name, replace(guess, domain=domain), cost)
    first, second = guess.axes[-2:]
    if first == second:
        return plan
    return plan.tied(second, first) if second.startswith("=") else plan.tied(first, second)


def _sparse(failed: FailedAttempt, floating: list[str], tests: list[str]) -> Iterator[Plan]:
    """Tensors in a sparse layout, where the error or the condition speaks of one."""
    # What torch says of dense tensors that are permuted, too.
    said = failed.failure.text.removeprefix("permute(sparse_coo)")
    about = " ".join([said, failed.failure.attribute, *tests])
    if not re.search(r"(?i)sparse|crow_indices|col_indices|\b_?indices\b.*layout", about):
        return
    layouts = ("csr", "coo") if re.search(r"(?i)csr|crow_ind", about) else ("coo", "csr")
    for position, name in enumerate(floating):
        guess = failed.plan.guess(name)
        if isinstance(guess, TensorGuess) and not guess.layout:
            if len(guess.axes) != 2:
                continue
            for step, layout in enumerate(layouts):
                cost = _ASKED + _STEP * (position + step)
                yield failed.plan.changed(name, replace(guess, layout=layout), cost)


def _asked(failed: FailedAttempt, floating: list[str], asked: list[str]) -> Iterator[Plan]:
    for step, domain in enumerate(asked):
        cost = _ASKED + _STEP * step
        for position, name in enumerate(floating):
            changed = with_domain(failed.plan, name, domain, cost + 0.5 * _STEP * position)
            if changed is not None:
                yield changed
        if len(floating) > 1:
            yield from _together(failed.plan, floating, domain, cost + _STEP)


def _together(plan: Plan, names: list[str], domain: str, cost: float) -> Iterator[Plan]:
    """All of ``names`` in one domain: a condition may compare them."""
    made, changes = plan, 0
    for name in names:
        changed = with_domain(made, name, domain, 0.0)
        made, changes = (changed, changes + 1) if changed is not None else (made, changes)
    if changes > 1:
        yield replace(made, cost=made.cost + cost)


def _unasked(failed: FailedAttempt, floating: list[str], asked: list[str]) -> Iterator[Plan]:
    """Every other domain: random values never meet some conditions."""
    others = [domain for domain in DOMAINS if domain not in asked and domain != "real"]
    for step, domain in enumerate(others):
        for name in floating[:2]:
            changed = with_domain(failed.plan, name, domain, _UNASKED + _STEP * step)
            if changed is not None:
                yield changed


def _integers(failed: FailedAttempt, named: list[str]) -> Iterator[Plan]:
    """Other domains, and smaller values, for integer tensors in a condition."""
    plan = failed.plan
    for name in dict.fromkeys(named):
        guess = plan.guess(name)
        if not isinstance(guess, TensorGuess) or guess.dtype != "int":
            continue
        for step, domain in enumerate(_OF_INTEGERS):
            if guess.domain != domain:
                yield plan.changed(name, replace(guess, domain=domain), 0.4 + _STEP * step)
        if guess.domain in ("offsets", "pointers") and guess.axes and guess.axes[0][0] != "=":
            # Segments that must not be empty need more elements than there are segments.
            yield plan.sized(guess.axes[0], _SEGMENTS, 0.35)
        for high in dict.fromkeys(failed.sizes.values()):
            if high != guess.high:
                yield plan.changed(name, replace(guess, high=high), 0.45)
        yield plan.changed(name, replace(guess, high=1), 0.9)


def _masks(failed: FailedAttempt, tests: list[str]) -> Iterator[Plan]:
    """Masks that are true for most elements, and for all, where a condition reads values: it may
    ask for as many as a mean needs, or for the first of each row."""
    if _about_shapes(tests):
        return
    for name, guess in dict(failed.plan.tensors()).items():
        if guess.dtype == "bool" and isinstance(failed.plan.guess(name), TensorGuess):
            for step, domain in enumerate(("mostly", "all")):
                if guess.domain != domain:
                    made = replace(guess, domain=domain)
                    yield failed.plan.changed(name, made, _ASKED + _STEP * step)


def _permutations(failed: FailedAttempt, tests: list[str]) -> Iterator[Plan]:
    """Lists and tensors of integers that permute the positions of an axis."""
    texts = [failed.failure.text, *tests]
    if not any(re.search(r"permut|sort(?:ed)?\(.*range\(", text) for text in texts):
        return
    for name, guess in zip(failed.plan.names, failed.plan.guesses, strict=True):
        if isinstance(guess, TensorGuess) and guess.dtype == "int":
            yield from _permuting(failed.plan, name, guess)
        value = guess.value if isinstance(guess, ValueGuess) else None
        if not isinstance(value, (list, tuple)) or not all(type(v) is int for v in value):
            continue
        for step, (symbol, size) in enumerate(failed.sizes.items()):
            order = [*range(1, size - 1), 0, *range(size - 1, size)] if size > 2 else [0]
            held = failed.plan if symbol[0] == "=" else failed.plan.sized(symbol, size)
            permutation = ValueGuess(order, "shape")
            yield held.changed(name, permutation, 0.2 + 0.02 * step)


def _permuting(plan: Plan, name: str, guess: TensorGuess) -> Iterator[Plan]:
    """The integers ``name`` as a permutation of an axis: of one of a matrix, or the only one."""
    for other, of in plan.tensors():
        if of.dtype != "float" or not of.axes or not isinstance(plan.guess(other), TensorGuess):
            continue
        flat = plan if len(of.axes) == 1 else with_rank(plan, other, 1, 0.1)
        for whole in (flat, plan):
            axes = whole.guess(other).axes  # type: ignore[union-attr]
            for step, axis in enumerate(reversed(axes)):
                order = replace(guess, axes=(axis,), domain="permutation", high=0)
                yield whole.changed(name, order, _ASKED + _STEP * step)


#: What operations say of a segment without elements: of its maximum, its repetition, its reshape.
_EMPTY_SEGMENT = re.compile(
    r"(?i)repeats can ?not be negative|non-zero size|non-?empty|is empty|empty (?:tensor|list|seq)"
    r"|numel\(\) == 0|has no identity|of 0 elements"
)


def _fewer_segments(failed: FailedAttempt) -> Iterator[Plan]:
    """Fewer bounds of segments than there are elements, where a segment would be empty, or shorter
    than that."""
    if not _EMPTY_SEGMENT.search(failed.failure.text):
        return
    for _, guess in failed.plan.tensors():
        bounds = guess.dtype == "int" and guess.domain in ("offsets", "pointers")
        free = len(guess.axes) == 1 and guess.axes[0][0] != "="
        if bounds and free and failed.sizes[guess.axes[0]] > _SEGMENTS:
            yield failed.plan.sized(guess.axes[0], _SEGMENTS, _ASKED)


def _floating_tensors(failed: FailedAttempt) -> list[str]:
    return [name for name, guess in failed.plan.tensors() if guess.dtype == "float"]


def _floating(failed: FailedAttempt, named: list[str]) -> list[str]:
    """Floating tensors that the condition names, else those on the failing line, then the rest."""
    floating = _floating_tensors(failed)
    chosen = [name for name in dict.fromkeys(named) if name in floating]
    if chosen:
        return chosen
    blamed = [name for name in failed.blamed() if name in floating]
    return list(dict.fromkeys([*blamed, *floating]))


def _on_results(failed: FailedAttempt) -> bool:
    """Whether a condition reads a floating tensor that forward computed."""
    return any(
        isinstance(node, ast.Name)
        and node.id not in failed.plan.names
        and isinstance(value := frame.names.get(node.id), torch.Tensor)
        and value.is_floating_point()
        for test, _, frame in failed.conditions()
        for node in ast.walk(test)
    )


def _on_integers(failed: FailedAttempt) -> bool:
    """Whether a condition reads integers that forward computed, and no floating tensor."""
    kinds = set()
    for test, _, frame in failed.conditions():
        for node in ast.walk(test):
            value = frame.names.get(node.id) if isinstance(node, ast.Name) else None
            if isinstance(value, torch.Tensor) and value.dtype != torch.bool:
                kinds.add(value.is_floating_point() or value.is_complex())
    return kinds == {False}


def _about_shapes(tests: list[str]) -> bool:
    """Whether conditions speak of shapes and types alone."""
    about = re.compile(r"\.(?:shape|ndim|dtype|size|dim|device|numel|is_\w+)\b|isinstance|\blen\(")
    values = re.compile(r"allclose|\.all\(|\.any\(|\.min\(|\.max\(|\.sum\(|norm\(|isfinite|\[")
    return all(about.search(test) and not values.search(test) for test in tests)
