"""A problem as the maps that ``numerics`` judges: first order, and second order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from gradlint.experiments.direction_projections import projections
from gradlint.numerics.directions import cotangent
from gradlint.numerics.judge import outputs_that_differ
from gradlint.numerics.map import Map
from gradlint.numerics.products import dense, norm, rms, unit_roundoff, widened
from gradlint.trace.graph import chooses_elements
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem


def first_order(problem: Problem) -> Map:
    """x ↦ f(x), over the outputs that are differentiable at the sample.

    Raises:
        OpRaised: when forward raises at the sample itself.
    """
    _, at_sample = problem.linearize()
    names = [item.name for item in at_sample if item.differentiable]
    outputs = [item.value.detach() for item in at_sample if item.differentiable]
    wanted = set(names)

    def evaluate(values: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        try:
            found = problem.forward(values)
        except OpRaised:
            return None
        chosen = [item.value for item in found if item.name in wanted]
        return chosen if len(chosen) == len(names) else None

    def pull_at(
        values: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        found = problem.pull(dict(zip(names, cotangents, strict=True)), values)
        return [None if grad is None else dense(grad) for grad in found]

    return Map(
        problem.values(),
        outputs,
        evaluate,
        pull_at,
        project=projections(problem),
        twin=lambda: float64_twin(problem),
    )


def float64_twin(problem: Problem) -> Map | None:
    """The first-order map of the same op in float64, at exactly the values of ``problem`` and
    without casts to 16 bits; None where it is in float64 already, or where the op refuses it or
    returns something coarser."""
    return _twin(problem, first_order)


def _twin(problem: Problem, made: Callable[[Problem], Map | None]) -> Map | None:
    for wide, dtype in (problem.exact() or (None, None), (problem.in_float64(), None)):
        try:
            found = None if wide is None else made(wide)
        except OpRaised:  # the op's kernels may require the dtype that it casts to
            continue
        if found is not None and _is_fine(found):
            return replace(found, stands_for=dtype, twin=None)
    return None


def _is_fine(found: Map) -> bool:
    """Whether no output is coarser than float64."""
    return all(unit_roundoff(y.dtype) <= unit_roundoff(torch.float64) for y in found.outputs)


def differentiable_names(problem: Problem) -> list[str]:
    """Names of the outputs that :func:`first_order` judges, in its order."""
    _, outputs = problem.linearize()
    return [item.name for item in outputs if item.differentiable]


def faulty_outputs(problem: Problem, function: Map, position: int, *, seed: int) -> list[str]:
    """Names of the outputs whose share of the gradient of input ``position`` is wrong.

    Each output is judged alone: the others are masked. With a single output the list is empty.
    """
    names = differentiable_names(problem)
    if len(names) < 2:
        return []
    wrong = outputs_that_differ(function, position, seed=seed, kinds=("aligned", "signs"))
    return [names[place] for place in wrong]


@dataclass
class SecondOrder:
    """(x, v) ↦ VJP(v) with its claimed derivative by double backward.

    Args:
        map: values are the inputs, then the cotangents; outputs are the gradients of ``targets``.
        names: of the values: input names, then ``grad_output`` names.
        targets: positions of the inputs that have a gradient.
        chooses: whether backward, or forward on the way to it, chooses among elements of results.
    """

    map: Map
    names: list[str]
    targets: list[int]
    chooses: bool = False


def second_order(
    problem: Problem, *, seed: int, cotangents: Sequence[torch.Tensor] | None = None
) -> SecondOrder | None:
    """The second-order map of ``problem``; None where no input has a gradient.

    Args:
        problem: the op at its sample.
        seed: of the cotangents of the differentiable outputs.
        cotangents: those to use instead, one for each output.

    Raises:
        OpRaised: when forward, backward or the backward of backward raises.
    """
    generator = torch.Generator().manual_seed(seed)
    _, at_sample = problem.linearize()
    outputs = [item for item in at_sample if item.differentiable]
    chosen = [item.name for item in outputs]
    vs = list(cotangents or (cotangent(item.value.detach(), generator) for item in outputs))
    count = len(problem.inputs)
    if not outputs or not count or len(vs) != len(outputs):
        return None

    def gradients(
        values: Sequence[torch.Tensor], *, graph: bool
    ) -> tuple[list[torch.Tensor], list[torch.Tensor | None]]:
        leaves, found = problem.linearize(values[:count])
        by_name = {item.name: item for item in found}
        cotangents = [v.detach().clone().requires_grad_(graph) for v in values[count:]]
        grads = problem.backward(
            [by_name[name] for name in chosen], leaves, cotangents, create_graph=graph
        )
        return [*leaves, *cotangents], grads

    point = [*problem.values(), *vs]
    _, grads = gradients(point, graph=True)
    targets = [position for position, grad in enumerate(grads) if grad is not None]
    if not targets:
        return None
    firsts = [grad for grad in grads if grad is not None]
    attached = [grad for grad in firsts if grad.requires_grad]
    if attached:
        # Run every node once: @once_differentiable leaves one that raises only when it is run, and
        # torch.autograd.grad would skip it.
        problem.accumulate(attached)

    def evaluate(values: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        try:
            _, found = gradients(values, graph=False)
        except OpRaised:
            return None
        picked = [found[position] for position in targets]
        if any(grad is None for grad in picked):
            return None
        return [dense(grad.detach()) for grad in picked if grad is not None]

    def pull_at(
        values: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        leaves, found = gradients(values, graph=True)
        pairs = [
            (found[position], w)
            for position, w in zip(targets, cotangents, strict=True)
            if found[position] is not None
        ]
        pairs = [(grad, w) for grad, w in pairs if grad is not None and grad.requires_grad]
        if not pairs:
            return [None] * len(leaves)
        return problem.backward(
            [grad for grad, _ in pairs if grad is not None], leaves, [w for _, w in pairs]
        )

    # A gradient is a sum over outputs: where its terms cancel, their rounding errors remain.
    weighed = sum(
        norm(widened(v) * widened(item.value)) for v, item in zip(vs, outputs, strict=True)
    )
    rounding = [
        unit_roundoff(firsts[place].dtype) * weighed / (rms(point[position]) or 1.0)
        for place, position in enumerate(targets)
    ]

    def twin() -> Map | None:
        def made(wide: Problem) -> Map | None:
            found = second_order(wide, seed=seed, cotangents=[widened(v) for v in vs])
            return found.map if found is not None and found.targets == targets else None

        return _twin(problem, made)

    names = [item.name for item in problem.inputs]
    names += ["grad_output" if len(chosen) == 1 else f"grad_{name}" for name in chosen]
    return SecondOrder(
        Map(
            point,
            [dense(grad.detach()) for grad in firsts],
            evaluate,
            pull_at,
            rounding,
            [*projections(problem), *[None] * len(vs)],
            twin,
        ),
        names,
        targets,
        chooses_elements(attached),
    )
