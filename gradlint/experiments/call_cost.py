"""How many calls the checks of a sample take: by shapes and dtypes, before anything is measured.

Two numbers each: what a check of a smooth, right gradient usually takes, and what one that passes
takes at most. Following up a disagreement may take more than either, within bounds of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from gradlint.model.rule import Rule
from gradlint.numerics.bank import KEPT
from gradlint.numerics.differences import (
    LADDER,
    LADDER_COARSER,
    LADDER_FINER,
    LADDER_FINEST,
    significand_bits,
)
from gradlint.numerics.path import NODES, PATH_STEPS

#: Significand bits up to which path integrals and the float64 twin are usual, not the exception.
LOW_PRECISION_BITS = 11

#: VJPs of the short path integral that is tried first below float64.
GLANCE_NODES = 3

#: Forward and backward calls in addition to the pairs: the maps themselves, whether backward is
#: linear, and the symmetry of second derivatives.
CALLS_BESIDE_PAIRS, CALLS_BESIDE_PAIRS_EACH_INPUT = 6, 4

#: At kinks, the gradient is judged again near them: this many judgements in all, and this many
#: evaluations of an input to find them, at most.
JUDGEMENTS, KINK_EVALUATIONS = 3, 48

#: Evaluations that the search for kinks takes along one direction (six a step, two steps), and the
#: number of directions.
KINK_EVALUATIONS_EACH_PAIR, KINK_PAIRS = 12, 2

#: Calls of the instrumented run, and at most of a rule for each further output.
RUN_CALLS, MOST_EACH_OUTPUT = 2, 8

#: Elements up to which torch's slow mode is expected.
SLOW_MODE = 256

#: Memory at its peak, in units of all inputs and outputs in float64 (seen as resident memory on an
#: elementwise op of 10⁵ to 4·10⁶ elements; graphs and temporary tensors included).
PEAK = {"others": 10.0, "GL4": 34.0, "GL5": 50.0}


@dataclass(frozen=True)
class Calls:
    """A number of forward and of backward calls."""

    forward: int = 0
    backward: int = 0

    @property
    def total(self) -> int:
        """Forward and backward together."""
        return self.forward + self.backward

    def __add__(self, other: Calls) -> Calls:
        return Calls(self.forward + other.forward, self.backward + other.backward)


@dataclass(frozen=True)
class Shape:
    """What the number of calls depends on.

    Args:
        inputs: inputs judged; outputs: differentiable ones.
        bits: fewest significand bits among them.
        replayed: whether draws are made again because tensors are large.
        nbytes: of inputs and outputs in float64.
        elements: of inputs and outputs.
    """

    inputs: int
    outputs: int
    bits: int
    replayed: bool
    nbytes: int
    elements: int

    @staticmethod
    def of(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> Shape:
        """The shape of a problem with these differentiable inputs and outputs."""
        tensors = [t for t in (*inputs, *outputs) if t.is_floating_point() or t.is_complex()]
        bits = min((significand_bits(t.dtype) for t in tensors), default=53)
        elements = sum(t.numel() for t in tensors)
        wide = sum(t.numel() * (16 if t.is_complex() else 8) for t in tensors)
        known = max(k for k in LADDER if k <= max(bits, min(LADDER)))
        return Shape(len(inputs), len(outputs), known, elements > KEPT, wide, elements)


def _judgement(pairs: int, values: int, bits: int, *, replayed: bool, most: bool) -> Calls:
    """Evaluations (as forward) and VJPs (as backward) of one judgement of ``values`` inputs."""
    if not pairs or not values:
        return Calls()
    double, rungs, walked = bits == max(LADDER), 0, 0
    if most or bits <= LOW_PRECISION_BITS:
        rungs = len(LADDER[bits]) + len(LADDER_FINER[bits]) + len(LADDER_COARSER[bits])
        walked = 0 if double else len(PATH_STEPS)
    if most:
        rungs += len(LADDER_FINEST.get(bits, ()))
    passes = 1 + (2 if rungs else 0) + (1 if walked else 0)
    each = pairs * values
    evaluations = 2 * each * (1 + rungs + walked)
    pulls = pairs + each * ((0 if double else GLANCE_NODES) + len(NODES) * walked)
    if replayed:
        pulls += pairs * (passes - 1)
    return Calls(evaluations, pulls)


def _judgements(pairs: int, values: int, shape: Shape, *, most: bool) -> Calls:
    """The same with the float64 twin and, at most, what kinks require."""
    found = _judgement(pairs, values, shape.bits, replayed=shape.replayed, most=most)
    if shape.bits < max(LADDER) and (most or shape.bits <= LOW_PRECISION_BITS):
        twin = _judgement(pairs, values, max(LADDER), replayed=shape.replayed, most=most)
        found = found + twin + Calls(pairs, 2 * pairs)
    if most:
        found = Calls(
            JUDGEMENTS * found.forward + KINK_EVALUATIONS * values, JUDGEMENTS * found.backward
        )
    return found


def first_order_calls(pairs: int, shape: Shape, *, most: bool) -> Calls:
    """Calls of GL401 with this many pairs: an evaluation is a forward call, a VJP one of each."""
    found = _judgements(pairs, shape.inputs, shape, most=most)
    return Calls(
        found.forward + found.backward + CALLS_BESIDE_PAIRS, found.backward + CALLS_BESIDE_PAIRS
    )


def second_order_calls(pairs: int, shape: Shape, *, most: bool) -> Calls:
    """Calls of GL501: an evaluation is one of each, a VJP one forward and two backward calls."""
    found = _judgements(pairs, shape.inputs + shape.outputs, shape, most=most)
    both = found.forward + found.backward
    return Calls(
        both + CALLS_BESIDE_PAIRS + CALLS_BESIDE_PAIRS_EACH_INPUT * shape.inputs,
        both + found.backward + CALLS_BESIDE_PAIRS + CALLS_BESIDE_PAIRS_EACH_INPUT * shape.inputs,
    )


def disagreement_calls(pairs: int, values: int, bits: int) -> Calls:
    """Evaluations and VJPs that it takes to see a disagreement, to confirm it, and to look for
    kinks; not to locate it."""
    climbed = 2 * pairs * values * (1 + len(LADDER[bits]))
    looked = KINK_EVALUATIONS_EACH_PAIR * min(pairs, KINK_PAIRS) * values
    return Calls(2 * climbed + looked, 2 * pairs)


def rule_calls(rule: Rule, shape: Shape, *, most: bool) -> Calls:
    """Calls of ``rule``, neither GL401 nor GL501, as its row in the catalogue says."""
    forward, backward = rule.calls.most if most else rule.calls.usual
    each_forward, each_backward = rule.calls.each_input
    more = max(shape.inputs - 1, 0)
    outputs = max(MOST_EACH_OUTPUT * (shape.outputs - 1), 0) if most and forward else 0
    return Calls(
        forward + each_forward * more + outputs,
        backward + each_backward * more + outputs,
    )


def other_calls(rules: Iterable[Rule], shape: Shape, *, most: bool) -> Calls:
    """Calls of ``rules``, neither GL401 nor GL501: the run itself, and their own."""
    found = Calls(RUN_CALLS, RUN_CALLS)
    for rule in rules:
        found = found + rule_calls(rule, shape, most=most)
    return found


def torch_calls(shape: Shape, order: int) -> Calls:
    """Calls of torch's own ``gradcheck`` (order 1) or ``gradgradcheck``, in the mode that its size
    suggests (gradlint/docs/numerics.md, section "torch's own verdict")."""
    count = 2 * shape.elements if shape.elements <= SLOW_MODE else 2 * (shape.inputs + 1)
    first = Calls(count + 2, count + 2)
    return first if order == 1 else Calls(2 * first.forward, 3 * first.backward)


def memory_bytes(shape: Shape, family: str) -> int:
    """Approximate bytes held at the peak, not counting the sample itself."""
    return int(shape.nbytes * PEAK[family])
