"""Checks that need no measurement: backward run twice, with zeros, with undefined gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from gradlint.base.text import error_line
from gradlint.dropin._function import Function
from gradlint.dropin._options import Options
from gradlint.dropin.failure import Failure, warn
from gradlint.numerics.directions import cotangent
from gradlint.numerics.products import dense
from gradlint.trace.sparse import is_sparse

#: Largest element of a zero gradient of a masked sparse input (atol of torch's allclose).
MASKED_ZERO = 1e-8

#: Rows of the Jacobian of each output, at most, that are computed twice to find its largest change
#: (heuristic: all rows of the outputs that tests have).
ROWS = 256

#: Torch's own warning, since test suites expect it.
BREAKS_CALLERS = (
    "Backwards compatibility: New undefined gradient support checking feature is enabled by "
    "default, but it may break existing callers of this function. If this is true for you, you can "
    'call this function with "check_undefined_grad=False" to disable the feature'
)


def check_again(function: Function, options: Options) -> Iterator[Failure]:
    """Check that backward, run twice on one graph, returns the same gradients, and their dtypes."""
    generator = torch.Generator().manual_seed(options.seed)
    # Of order one, as in torch, whose tolerance is that of the entries of the Jacobian.
    vs = [cotangent(torch.ones_like(y.detach()), generator) for y in function.outputs]
    kept = [v.clone() for v in vs]
    first = function.backward(function.outputs, vs)
    second = function.backward(function.outputs, vs)
    if options.check_grad_dtypes:
        for k, (grad, leaf) in enumerate(zip(first, function.inputs, strict=True)):
            if grad is not None and grad.dtype != leaf.dtype:
                yield Failure(
                    "Gradient has dtype mismatch",
                    [f"the gradient of input {k} is {grad.dtype}, the input is {leaf.dtype}"],
                )
    worst, which = 0.0, 0
    for k, (a, b) in enumerate(zip(first, second, strict=True)):
        moved = _distance(a, b)
        if moved > worst:
            worst, which = moved, k
    changed = [
        k for k, (v, old) in enumerate(zip(vs, kept, strict=True)) if not torch.equal(v, old)
    ]
    if worst > options.nondet_tol > 0.0:
        worst = min(worst, _worst_entry(function, which, options.seed))
    if worst > options.nondet_tol or changed:
        lines = [f"the gradient of input {which} changes by up to {worst:.2e} between two runs"]
        if changed:
            lines.append(
                f"cause: backward changes the incoming gradient of output {changed[0]} in place; "
                "clone it first"
            )
        else:
            lines.append(
                "if the operation is inherently non-deterministic, pass nondet_tol=<tolerance>"
            )
        yield Failure(
            "Backward is not reentrant, i.e., running backward with same input and grad_output "
            "multiple times gives different values. "
            f"The tolerance for nondeterminism was {options.nondet_tol}.",
            lines,
        )


def _worst_entry(function: Function, which: int, seed: int) -> float:
    """How far single entries of the Jacobian of an input change between two runs of backward; in
    the sum over all outputs their changes add up."""
    generator = torch.Generator().manual_seed(seed)
    worst = 0.0
    for y in function.outputs:
        rows = torch.randperm(y.numel(), generator=generator)[:ROWS]
        for row in rows.tolist():
            v = torch.zeros(y.numel(), dtype=y.dtype, device=y.device)
            v[row] = 1.0
            runs = [function.backward([y], [v.reshape(y.shape).clone()])[which] for _ in range(2)]
            worst = max(worst, _distance(*runs))
    return worst


def check_zero(function: Function, options: Options) -> Iterator[Failure]:
    """Check that gradients are zero if every output gradient is, and have their inputs' form."""
    zeros = [torch.zeros(y.shape, dtype=y.dtype, device=y.device) for y in function.outputs]
    for k, (grad, leaf) in enumerate(
        zip(function.backward(function.outputs, zeros), function.inputs, strict=True)
    ):
        if grad is None:
            continue
        wrong = _misfit(grad, leaf)
        if wrong:
            yield Failure(wrong, [f"gradient of input {k}"])
            continue
        flat = dense(grad)
        allowed = MASKED_ZERO if options.masked else 0.0
        if not bool((flat.abs() <= allowed).all()):
            yield Failure(
                "backward not multiplied by grad_output",
                [
                    f"the gradient of input {k} is {_largest(flat)} although the gradient of every "
                    "output is zero"
                ],
            )


def check_undefined(function: Function, *, warned: bool = True) -> Iterator[Failure]:
    """Check that undefined output gradients count as zeros: all of them, then each by itself.

    Args:
        warned: whether a failure comes with torch's warning; torch gives it if nothing failed
            before.
    """
    undefined: Any = torch._C._functions.UndefinedGrad
    outputs = function.outputs
    cases: list[list[torch.Tensor]] = [[undefined()(y) for y in outputs]]
    if len(outputs) > 1:
        cases += [
            [undefined()(y) if place == other else y for other, y in enumerate(outputs)]
            for place in range(len(outputs))
        ]
    for place, case in enumerate(cases):
        which = "all outputs" if place == 0 else f"output {place - 1}"
        zeros = [torch.zeros(y.shape, dtype=y.dtype, device=y.device) for y in outputs]
        try:
            grads = function.backward(case, zeros)
        except RuntimeError as error:
            if warned:
                warn(BREAKS_CALLERS, UserWarning)
            yield Failure(
                "Expected backward function to handle undefined output grads. "
                'Please look at "Notes about undefined output gradients" in '
                '"tools/autograd/derivatives.yaml"',
                [
                    f"backward raised {type(error).__name__} where the gradient of {which} is "
                    f"undefined: {error_line(error)}",
                    "with set_materialize_grads(False), outputs that the loss does not use have "
                    "the gradient None",
                ],
                error,
            )
            return
        for k, grad in enumerate(grads):
            if grad is not None and not bool((dense(grad) == 0).all()):
                if warned:
                    warn(BREAKS_CALLERS, UserWarning)
                yield Failure(
                    "Expected all input grads to be undefined or zero when all output grads are "
                    'undefined or zero. Please look at "Notes about undefined output gradients" in '
                    '"tools/autograd/derivatives.yaml"',
                    [
                        f"the gradient of input {k} is {_largest(dense(grad))} where the gradient "
                        f"of {which} is undefined and the others are zero"
                    ],
                )
                return


def _misfit(grad: torch.Tensor, leaf: torch.Tensor) -> str:
    """What is wrong with a gradient's layout, dtype, device or shape, in torch's words, or ""."""
    if grad.layout != torch.strided:
        if grad.layout != leaf.layout:
            return f"grad is incorrect layout ({grad.layout} is not {leaf.layout})"
        if is_sparse(grad):
            kind = str(grad.layout).replace("torch.", "").replace("_coo", "")
            for name in ("sparse_dim", "dense_dim"):
                got, expected = getattr(grad, name)(), getattr(leaf, name)()
                if got != expected:
                    how = f"incorrect {name} {got}, expected {expected}"
                    return f"grad is {kind} tensor, but has {how}"
    if grad.dtype != leaf.dtype:
        return "grad is incorrect type"
    if grad.device != leaf.device:
        return "grad is incorrect device"
    return "grad is incorrect size" if grad.shape != leaf.shape else ""


def _distance(a: torch.Tensor | None, b: torch.Tensor | None) -> float:
    """Largest difference of two gradients; None counts as zero, and NaN as equal to NaN."""
    if a is None and b is None:
        return 0.0
    if a is None or b is None:
        only = dense(a if b is None else b)  # type: ignore[arg-type]
        return float(only.abs().max()) if only.numel() else 0.0
    a, b = dense(a), dense(b)
    if torch.equal(a, b) or not a.numel():
        return 0.0
    return float(torch.nan_to_num((a - b).abs(), nan=0.0).max())


def _largest(flat: torch.Tensor) -> str:
    bad = flat[~torch.isfinite(flat)]
    if bad.numel():
        return str(bad.flatten()[0].item())
    return f"up to {float(flat.abs().max()):.3g}"
