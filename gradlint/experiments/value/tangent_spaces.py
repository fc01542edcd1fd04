"""Gradients in the tangent space of a group, which have fewer components than its elements.

Libraries for rotations and poses keep a quaternion, perhaps with a translation and a scale, and
return the gradient with respect to a small motion: 3, 4, 6 or 7 numbers, with a zero behind them,
so that the shape fits. What such a backward is given has that zero, too, and is not read there.
This is another convention, and no formula is wrong; nor is it the derivative of forward.

Where rotations are kept as matrices R, the gradient with respect to a small motion is R S with a
skew-symmetric S: the derivative of forward, projected onto the tangent space at R. What forward
does beside the group is nobody's business then. Such a gradient is compared with differences along
the group: with X for what is moved, forward is taken at the rotation nearest to X.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from gradlint.experiments.differentiable_maps import first_order
from gradlint.experiments.judge_at_other_inputs import same_outputs
from gradlint.experiments.other_forward import LEFT_OUT
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.said_of_gradients import said_instead
from gradlint.model.report import Explanation, Finding
from gradlint.numerics.directions import cotangent
from gradlint.numerics.judge import judge
from gradlint.numerics.map import Map
from gradlint.numerics.products import all_finite, widened
from gradlint.numerics.verdict import AGREES, ROUNDED
from gradlint.trace.op_io import OpRaised

#: Numbers by which an element of a group is kept: a unit quaternion alone, with a scale, with a
#: translation, or with both.
SIZES = frozenset({4, 5, 7, 8})

#: Components that a motion of a group has at least: a rotation in space has three.
LEAST_OF_MOTION = 3

#: Components at the end that may be zero together: the zero that is put there, and a change of
#: scale, which is the last component of a motion that has one.
MOST_AT_THE_END = 2

#: Share of its size by which an input is moved to see whether outputs depend on it (heuristic).
MOVE = 2.0**-6

#: Shapes of a matrix that holds a rotation, with the size of the rotation: alone in two or three
#: dimensions, or beside a translation.
ROTATIONS: dict[tuple[int, ...], int] = {(2, 2): 2, (3, 3): 3, (2, 3): 2, (3, 4): 3}

#: Steps of the iteration X ← X (3 - XᵀX) / 2 to the nearest rotation (Björck & Bowie 1971): an
#: error e becomes about e², so that four steps bring 2⁻⁸ to rounding.
NEAREST_STEPS = 4

#: Share of the gradient up to which its part outside of the tangent space counts as rounding: where
#: float64 is asked for (heuristic: a few thousand roundings).
OUTSIDE = 1e-11

_HELP = (
    "the last component is always zero, as in a gradient with respect to a small motion in the"
    " tangent space of a group: if that is meant, document it, and compare it with differences"
    " along such motions; otherwise "
)


_HELP_AT_ROTATIONS = (
    "if a gradient on the group is meant, say so in the documentation; optimizers that do not keep "
    "to the group, and functions that are composed with this one, get a part of the gradient only"
)

#: What documentation says that backward returns → what to do.
_HELP_INSTEAD: Mapping[Explanation, str] = {
    "geometry": (
        "the documentation speaks of a natural or Riemannian gradient, which is not the derivative"
        " of forward and can't be compared with it: declare it (`surrogate` on the class or in a"
        " spec); otherwise "
    ),
    "attribution": (
        "the documentation says that backward hands back relevance, which is not the derivative of"
        " forward and can't be compared with it: declare it (`surrogate` on the class or in a"
        " spec); otherwise "
    ),
    "substitute": (
        "the documentation says that another gradient is put in place of the derivative of forward:"
        " declare it (`surrogate` on the class or in a spec), and backward is compared with it;"
        " otherwise "
    ),
}


def soften_tangents(subject: Subject, findings: Sequence[Finding]) -> None:
    """Only warn about the gradients of an op that takes or returns elements of a group, where one
    of them is a vector of its tangent space, and about those that documentation says to be no
    derivatives."""
    wrong = [item for item in findings if item.severity == "error" and not item.grounds.explained]
    instead = said_instead(subject.op.function or subject.op.defining) if wrong else None
    if instead is not None:
        for item in wrong:
            item.grounds = replace(item.grounds, explained=instead)
            item.help = _HELP_INSTEAD[instead] + item.help
        return
    # An argument that backward leaves out explains the whole error, and no group does.
    others = [item for item in wrong if item.cause != LEFT_OUT]
    wide = [item for item in others if _beyond_components(subject, item)]
    if any(_is_tangent(subject, item) for item in wide) or (wide and _reads_tangent(subject)):
        for item in others:
            item.grounds = replace(item.grounds, explained="tangent")
            item.help = _HELP + item.help
        return
    if wrong:
        _soften_at_rotations(subject, wrong)


def _soften_at_rotations(subject: Subject, wrong: Sequence[Finding]) -> None:
    """Only warn about wrong gradients that lie in the tangent space where all matrices that can
    hold a rotation do, and that are right along it."""
    rotations = _rotations(subject)
    names = {position: subject.problem.inputs[position].name for position in rotations}
    about = [item for item in wrong if item.input in names.values()]
    if not about:
        return
    there = Subject(subject.op, subject.sample, subject.settings)
    there.problem.patience = subject.problem.patience
    there.problem.preserve_state = subject.problem.preserve_state
    there.problem.put(rotations)
    asked = [k for k, name in names.items() if any(name == item.input for item in about)]
    try:
        function = first_order(there.problem)
        tangent = {k for k in asked if _lies_in_tangent_space(function, k, subject.seed)}
        judged = judge(_along_rotations(function, rotations), seed=subject.seed, inputs=asked)
    except OpRaised:
        return
    finally:
        subject.problem.forward_calls += there.problem.forward_calls
        subject.problem.backward_calls += there.problem.backward_calls
    right = {item.index for item in judged.inputs if item.verdict in (AGREES, ROUNDED)}
    for item in about:
        if any(names[k] == item.input for k in tangent & right):
            item.grounds = replace(item.grounds, explained="tangent")
            item.cause_text = (
                f"where `{item.input}` holds rotations, the gradient is the derivative projected "
                "onto the tangent space of the group"
            )
            item.help = _HELP_AT_ROTATIONS


def _rotations(subject: Subject) -> Mapping[int, torch.Tensor]:
    """Position → a value that holds rotations, of the inputs that can and are finite."""
    found = {}
    for position, item in enumerate(subject.problem.inputs):
        value = item.value
        size = ROTATIONS.get(tuple(value.shape[-2:]))
        if size is None or value.dtype != torch.float64 or value.layout != torch.strided:
            continue
        if not all_finite(value):
            continue
        left, _, right = torch.linalg.svd(value[..., :size])
        left[..., -1] *= torch.linalg.det(left @ right).sign()[..., None]
        found[position] = torch.cat((left @ right, value[..., size:]), -1)
    return found


def _nearest_rotation(value: torch.Tensor) -> torch.Tensor:
    """``value`` with the rotation nearest to the one that it nearly holds."""
    size = ROTATIONS[tuple(value.shape[-2:])]
    near, eye = value[..., :size], torch.eye(size, dtype=value.dtype, device=value.device)
    for _ in range(NEAREST_STEPS):
        near = near @ (3.0 * eye - near.mT @ near) / 2.0
    return torch.cat((near, value[..., size:]), -1)


def _along_rotations(function: Map, positions: Mapping[int, torch.Tensor]) -> Map:
    """``function`` of the nearest rotations, with its claimed gradient pulled back to there."""

    def nearest(values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return [_nearest_rotation(v) if k in positions else v for k, v in enumerate(values)]

    def evaluate(values: Sequence[torch.Tensor]) -> Sequence[torch.Tensor] | None:
        return function.evaluate(nearest(values))

    def pull_at(
        values: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
    ) -> Sequence[torch.Tensor | None]:
        found = list(function.pull_at(nearest(values), cotangents))
        for position in positions:
            claimed = found[position]
            if claimed is not None:
                found[position] = _pulled_back(values[position], claimed)
        return found

    return replace(function, evaluate=evaluate, pull_at=pull_at, project=None, twin=None)


def _pulled_back(value: torch.Tensor, claimed: torch.Tensor) -> torch.Tensor:
    """The gradient for ``value``, where ``claimed`` is the one for the rotation nearest to it.

    By autograd: the first ``torch.func.vjp`` of a process imports what compiles, which takes as
    long as importing torch.
    """
    with torch.enable_grad():
        leaf = value.detach().requires_grad_()
        near = _nearest_rotation(leaf)
    return torch.autograd.grad(near, leaf, claimed)[0]


def _lies_in_tangent_space(function: Map, position: int, seed: int) -> bool:
    """Whether the claimed gradient of an input that holds rotations R is R S, with S skew-symmetric
    and not zero."""
    generator = torch.Generator().manual_seed(seed)
    vs = [cotangent(output, generator) for output in function.outputs]
    gradient = function.gradients_at(function.values, vs)[position]
    size = ROTATIONS[tuple(gradient.shape[-2:])]
    inner = widened(function.values[position][..., :size].mT @ gradient[..., :size])
    largest = float(inner.abs().max()) if inner.numel() else 0.0
    outside = (inner + inner.mT).abs()
    return all_finite(inner) and largest > 0.0 and bool((outside <= OUTSIDE * largest).all())


def _beyond_components(subject: Subject, finding: Finding, count: int = 1) -> bool:
    """Whether more elements of the gradient are wrong than ``count`` components have."""
    found = [item.value for item in subject.problem.inputs if item.name == finding.input]
    differing = finding.evidence.get("differing")
    measured = finding.evidence.get("measured_elements")
    if not found or found[0].dim() == 0 or not isinstance(differing, int):
        return False
    if isinstance(measured, int) and measured < found[0].numel():
        # A few elements of a large tensor were measured: which ones are wrong tells more.
        shown = {tuple(item["index"])[-1:] for item in finding.evidence.get("elements", ())}
        return len(shown) > count
    return differing > count * (found[0].numel() // max(found[0].shape[-1], 1))


def _is_tangent(subject: Subject, finding: Finding) -> bool:
    """Whether the last component of the gradient is zero everywhere, at other inputs too, and the
    others nowhere, or everywhere where a motion along them changes nothing, although forward
    depends on it. Of the components that
    are not zero, at least one must be wrong: else a part was merely left out."""
    position = [item.name for item in subject.problem.inputs].index(finding.input or "")
    for gradient in (
        subject.first_order.judgement.probe(0).gradients[position],
        _pulled(subject, [_other(v) for v in _cotangents(subject)], position),
        *_at_opposite(subject, position),
    ):
        if gradient is None or gradient.dim() == 0 or gradient.shape[-1] not in SIZES:
            return False
        left_out = ~gradient.flatten(0, -2).any(0) if gradient.dim() > 1 else gradient == 0
        if not bool(left_out[-1]) or not bool(gradient[..., ~left_out].all()):
            return False
        at_the_end = int(left_out.flip(0).long().cumprod(0).sum())
        if int((~left_out).sum()) < LEAST_OF_MOTION or at_the_end > MOST_AT_THE_END:
            return False
        if not _beyond_components(subject, finding, int(left_out.sum())):
            return False
    return _depends_on(subject, position, left_out)


def _depends_on(subject: Subject, position: int, components: torch.Tensor) -> bool:
    """Whether forward depends on some of these components of an input. Where it depends on none, as
    a correlation at a lag leaves out the last sample, their derivative is zero."""
    values = subject.problem.values()
    values[position] = values[position] * (1.0 + MOVE * components.to(values[position].dtype))
    try:
        there = subject.problem.forward(values)
    except OpRaised:
        return True
    return not same_outputs(there, subject.run.outputs)


def _at_opposite(subject: Subject, position: int) -> list[torch.Tensor]:
    """The claimed gradient where the input has the other sign; empty where forward does not take
    that."""
    function = subject.first_order_map
    values = [-v if k == position else v for k, v in enumerate(function.values)]
    try:
        return [function.gradients_at(values, _cotangents(subject))[position]]
    except (OpRaised, ValueError):
        return []


def _reads_tangent(subject: Subject) -> bool:
    """Whether backward reads all but the last component of the gradients of an output, although
    that component depends on the inputs."""
    cotangents = _cotangents(subject)
    outputs = {item.name: item.value for item in subject.run.outputs if item.differentiable}
    if len(outputs) != 1:
        return False
    name, value = next(iter(outputs.items()))
    if value.dim() == 0 or value.shape[-1] not in SIZES:
        return False
    last, others = cotangents[0].clone(), cotangents[0].clone()
    last[..., -1] = _other(last[..., -1])
    others[..., :-1] = _other(others[..., :-1])
    try:
        moved = subject.problem.forward([v * (1.0 + MOVE) for v in subject.problem.values()])
    except OpRaised:
        return False
    there = {item.name: item.value for item in moved}
    if name not in there or torch.equal(there[name][..., -1], value[..., -1]):
        return False
    read = False
    for position in range(len(subject.problem.inputs)):
        own, by_last, by_others = (
            _pulled(subject, vs, position) for vs in (cotangents, [last], [others])
        )
        if own is None or by_last is None or not (torch.equal(own, by_last) and _is_full(own)):
            return False
        read = read or by_others is None or not torch.equal(own, by_others)
    return read


def _is_full(gradient: torch.Tensor) -> bool:
    """Whether no element is zero, the last components of elements of a group aside. Where a mask or
    a clamp leaves elements out, it may leave out the last component by chance."""
    of_group = gradient.dim() and gradient.shape[-1] in SIZES
    return bool((gradient[..., :-1] if of_group else gradient).all())


def _cotangents(subject: Subject) -> list[torch.Tensor]:
    return list(subject.first_order.judgement.probe(0).cotangents)


def _other(cotangent: torch.Tensor) -> torch.Tensor:
    return -1.7 * cotangent + 0.3


def _pulled(
    subject: Subject, cotangents: Sequence[torch.Tensor], position: int
) -> torch.Tensor | None:
    names = [item.name for item in subject.run.outputs if item.differentiable]
    try:
        found = subject.problem.pull(dict(zip(names, cotangents, strict=True)))[position]
    except (OpRaised, ValueError):
        return None
    return None if found is None else found.clone()  # backward may write to that memory again
