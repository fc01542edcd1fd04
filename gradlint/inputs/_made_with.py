"""Axes of the sizes that a module was made with.

A cell that puts its input behind its state and keeps neither of their sizes as an attribute refuses
whatever has others, and the error names no more than their sum.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace

from gradlint.inputs import _names
from gradlint.inputs._evidence import Evidence
from gradlint.inputs._moves import LARGEST_SIZE
from gradlint.inputs._plan import GroupGuess, Plan, TensorGuess
from gradlint.model.op import Op

#: Names of what a cell keeps from step to step, and of the number of its units.
_STATES = "h hx hidden* c cx cell* state* carry h_* *_h c_* *_c *_hidden *_cell *_state prev* old_*"
_OF_STATES = "h hid *hidden* *state* *units* cell* *_cell n?h nhid"
#: Names of the width of its input.
_OF_INPUTS = "*input* in in_* *_in n?in x?dim *features*"
#: What it costs to take the sizes that names tell apart, and those that nothing does (heuristic:
#: more than what an error asks for; about as much as to give all tensors one shape).
_TOLD, _UNTOLD, _EACH = 0.25, 1.0, 0.02
#: Tensors and numbers up to which all combinations are tried.
_MOST_TENSORS, _MOST_NUMBERS = 4, 3
#: Parts of a state, at most: of an LSTM there are two.
_MOST_PARTS = 4
#: The axis of rows that all tensors share.
_ROWS = "rows"


def plans_of_constructor(op: Op, evidence: Mapping[str, Evidence], first: Plan) -> Iterator[Plan]:
    """Plans in which floating tensors have rows of lengths that the module of ``op`` was made with:
    first those that the names of a cell's arguments tell, then all others. A state that the code
    unpacks, ``h, c = state``, is a tuple of them.

    Args:
        op: the operator.
        evidence: what is known about each parameter.
        first: the likeliest plan, of which all else stays.
    """
    numbers = _made_with(op)
    tensors = [
        name
        for name, guess in zip(first.names, first.guesses, strict=True)
        if _is_floating(guess) and not evidence[name].shape
    ]
    if not numbers or len(tensors) < 2:
        return
    for name in tensors:
        guess, parts = first.guess(name), evidence[name].length or 0
        if isinstance(guess, TensorGuess) and 1 < parts <= _MOST_PARTS:
            first = first.changed(name, GroupGuess((guess,) * parts, tuple))
    told = _told(tensors, numbers)
    if told:
        yield _of_rows(first, told, _TOLD)
    sizes = list(dict.fromkeys(numbers.values()))
    if 1 < len(sizes) <= _MOST_NUMBERS and len(tensors) <= _MOST_TENSORS:
        for step, chosen in enumerate(itertools.product(sizes, repeat=len(tensors))):
            lengths = dict(zip(tensors, chosen, strict=True))
            if len(set(chosen)) > 1 and lengths != told:
                yield _of_rows(first, lengths, _UNTOLD + _EACH * step)


def _made_with(op: Op) -> dict[str, int]:
    """The numbers above one that the module was made with, by the names of the constructor: those
    that were chosen, those that the module keeps under the same name, or the defaults."""
    if op.module is None:
        return {}
    try:
        parameters = inspect.signature(type(op.module)).parameters.values()
    except (TypeError, ValueError):  # it has none that Python can tell
        return {}
    kept = vars(op.module)
    values = {p.name: op.constructor.get(p.name, kept.get(p.name, p.default)) for p in parameters}
    return {k: v for k, v in values.items() if type(v) is int and 1 < v <= LARGEST_SIZE}


def _is_floating(guess: object) -> bool:
    if isinstance(guess, GroupGuess):
        return all(map(_is_floating, guess.items))
    return isinstance(guess, TensorGuess) and guess.dtype == "float" and bool(guess.axes)


def _told(tensors: list[str], numbers: dict[str, int]) -> dict[str, int]:
    """Tensor → the length of its rows, where they are an input and a state, or states, and the
    numbers say how long each is."""
    states = [name for name in tensors if _names.matches(_STATES, name)]
    units = [n for name, n in numbers.items() if _names.matches(_OF_STATES, name)]
    others = [name for name in numbers if not _names.matches(_OF_STATES, name)]
    widths = [name for name in others if _names.matches(_OF_INPUTS, name)] or others
    if not states or not units or not widths or len(states) == len(tensors):
        return {}
    return {name: units[0] if name in states else numbers[widths[0]] for name in tensors}


def _of_rows(plan: Plan, lengths: dict[str, int], cost: float) -> Plan:
    """``plan`` with tensors of as many rows each, as long as ``lengths`` says."""
    for name, length in lengths.items():
        axes = (_ROWS, f"={length}")

        def of_rows(guess: TensorGuess, axes: tuple[str, ...] = axes) -> TensorGuess:
            return replace(guess, axes=axes)

        guess = plan.guess(name)
        if isinstance(guess, TensorGuess):
            plan = plan.changed(name, of_rows(guess))
        elif isinstance(guess, GroupGuess):
            plan = plan.changed(name, guess.mapped(of_rows))
    return replace(plan, cost=plan.cost + cost)
