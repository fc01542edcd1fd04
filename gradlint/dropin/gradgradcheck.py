"""``gradlint.gradgradcheck``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.gradcheck import GradcheckError

from gradlint.dropin._arguments import as_tuple, outputs_of, tensors_in
from gradlint.dropin._as_map import as_map
from gradlint.dropin._decided import decided, suspects
from gradlint.dropin._function import Function, Knowledge
from gradlint.dropin._options import ATOL, EPS, NONDET_TOL, RTOL, Options, seed
from gradlint.dropin._tolerance import beyond_tolerances
from gradlint.dropin.failure import warn
from gradlint.dropin.gradcheck import verify
from gradlint.numerics.map import Projection
from gradlint.numerics.products import norm, rms, unit_roundoff, widened
from gradlint.numerics.verdict import DIFFERS
from gradlint.trace.graph import nodes_above

#: One kind of direction suffices to see whether backward itself is wrong; gradcheck uses all.
GLANCE = ("signs",)

#: How the name of the node ends that @once_differentiable leaves in a graph.
REFUSAL = "Error"

#: Note on a backward with that mark.
ONCE = (
    "note: backward is marked @once_differentiable, which refuses second derivatives: write it "
    "with differentiable operations and drop the mark, or leave gradgradcheck out"
)


class Backward:
    """The gradients of ``func`` as a function of (inputs, cotangents), to be checked like any
    other.

    Args:
        func: the function whose gradients are taken.
        args: its arguments.
        seed: seed of the cotangents.

    Attributes:
        cotangents: one per differentiable output.
        refuses: whether the graph of the gradients ended at @once_differentiable.
    """

    def __init__(self, func: Callable[..., Any], args: tuple[Any, ...], seed: int) -> None:
        self.func, self.args, self.seed = func, args, seed
        self.cotangents: tuple[Any, ...] = ()
        self.refuses = False
        self._outputs: list[torch.Tensor] = []
        self._kept: list[int] = []
        self._moving = [
            place
            for place, arg in enumerate(args)
            if isinstance(arg, torch.Tensor) and arg.requires_grad
        ]

    def __call__(self, *values: Any) -> tuple[torch.Tensor, ...]:
        """The gradients that are not None."""
        count = len(values) - len(self.cotangents)
        xs, vs = values[:count], values[count:]
        # Forward mode passes tensors without requires_grad, but backward needs it.
        for place in self._moving:
            xs[place].requires_grad_()
        for v, given in zip(vs, self.cotangents, strict=True):
            if isinstance(given, torch.Tensor) and given.requires_grad:
                v.requires_grad_()
        leaves = list(dict.fromkeys(t for x in xs for t in tensors_in(x) if t.requires_grad))
        outputs = [y for y in outputs_of(self.func(*xs)) if y.requires_grad]
        grads = torch.autograd.grad(outputs, leaves, vs, create_graph=True, allow_unused=True)
        if not self._outputs:
            self._outputs = [y.detach() for y in outputs]
            self._kept = [place for place, grad in enumerate(grads) if grad is not None]
            self.refuses = _refused([grad for grad in grads if grad is not None])
        return tuple(grad for grad in grads if grad is not None)

    def draw_cotangents(self, *, strided: bool) -> None:
        """Draw a cotangent for each differentiable output, uniform in [−1, 1] as in torch.

        Args:
            strided: whether they are non-contiguous.
        """
        function = Function(self.func, self.args, masked=True)
        generator = torch.Generator().manual_seed(self.seed)
        try:
            function.start()
            self.cotangents = tuple(_drawn(y, generator, strided) for y in function.outputs)
        finally:
            function.restore()

    @property
    def knowledge(self) -> Knowledge:
        """What is known about this function beforehand."""
        return Knowledge(self._rounding, self._domain)

    def _domain(self) -> list[Projection | None]:
        moving = [v for v in self.cotangents if isinstance(v, torch.Tensor) and v.requires_grad]
        first = Function(self.func, self.args, masked=True)
        try:
            return [*first.domain(), *[None] * len(moving)]
        finally:
            first.restore()

    def _rounding(self) -> list[float]:
        """Standard deviation of the rounding of an element of each gradient.

        A gradient is a sum over outputs, per unit of the input, whose terms of size ‖v∘y‖ may
        cancel, so the rounding is ε·‖v∘y‖ / rms(x).
        """
        weighed = sum(
            norm(widened(v) * widened(y))
            for v, y in zip(self.cotangents, self._outputs, strict=True)
            if isinstance(v, torch.Tensor)
        )
        leaves = list(dict.fromkeys(t for x in self.args for t in tensors_in(x) if t.requires_grad))
        return [
            unit_roundoff(leaves[place].dtype) * weighed / (rms(leaves[place]) or 1.0)
            for place in self._kept
        ]

    def first_order(self, options: Options) -> str:
        """A sentence that backward itself is wrong, by more than the tolerances of the call; "" if
        one measurement does not show it."""
        function = Function(self.func, self.args, masked=True)
        try:
            function.start()
            if not function.differentiable:
                return ""
            judged, decision = decided(function, as_map(function), self.seed, kinds=GLANCE)
            differing = suspects(decision, DIFFERS)
            places = beyond_tolerances(function, judged, decision, differing, options)
        finally:
            function.restore()
        wrong = [str(decision.judgement.inputs[place].index) for place in places]
        if not wrong:
            return ""
        return (
            f"backward itself is wrong for input {', '.join(wrong)}: gradgradcheck only checks how "
            "backward is differentiated; gradlint.gradcheck checks backward itself"
        )


def _drawn(y: torch.Tensor, generator: torch.Generator, strided: bool) -> torch.Tensor:
    shape = (*y.shape, 2) if strided and y.numel() > 1 else tuple(y.shape)
    parts = [
        torch.rand(shape, generator=generator, dtype=torch.float64) * 2.0 - 1.0 for _ in range(2)
    ]
    drawn = torch.complex(*parts) if y.is_complex() else parts[0]
    drawn = drawn.to(device=y.device, dtype=y.dtype)
    # Every second element of a longer tensor, so that it is not contiguous along any axis.
    return (drawn[..., 0] if len(shape) > y.dim() else drawn).requires_grad_()


def _refused(grads: list[torch.Tensor]) -> bool:
    """Whether the graph of ``grads`` ends at @once_differentiable."""
    return any(node.name().endswith(REFUSAL) for node in nodes_above(grads))


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = EPS,
    atol: float = ATOL,
    rtol: float = RTOL,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = NONDET_TOL,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Check the second derivatives of ``func``: ``torch.autograd.gradgradcheck`` with the verdicts
    of :func:`gradlint.gradcheck`.

    As in torch, this checks whether backward is differentiated correctly, not whether backward
    itself is right; gradcheck does that. If one measurement shows that backward itself is wrong,
    the message of a failure says so, and a pass comes with an :class:`InconclusiveWarning` (without
    ``fast_mode``, which leaves that measurement out).

    Args:
        func, inputs: as for :func:`gradlint.gradcheck`.
        grad_outputs: the gradients of the outputs; default random ones that require grad.
        gen_non_contig_grad_outputs: whether those are made non-contiguous.
        check_fwd_over_rev: whether forward mode over backward is checked.
        check_rev_over_rev: whether backward of backward is checked.
        eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, check_grad_dtypes,
            check_batched_grad, fast_mode, masked: as for :func:`gradlint.gradcheck`.

    Returns:
        True; False on a failure where ``raise_exception`` is False.

    Raises:
        GradcheckError: a check failed; the message begins as torch's does.
        ValueError, RuntimeError: the inputs or outputs cannot be checked, as in torch.
    """
    for good, message in (
        (
            check_fwd_over_rev or check_rev_over_rev,
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True",
        ),
        (
            check_rev_over_rev or not check_undefined_grad,
            "Setting check_undefined_grad=True requires check_rev_over_rev to be True",
        ),
        (
            check_rev_over_rev or not check_batched_grad,
            "Setting check_batched_grad=True requires check_rev_over_rev to be True",
        ),
    ):
        if not good:
            raise AssertionError(message)
    options = Options(
        "gradgradcheck",
        eps,
        atol,
        rtol,
        nondet_tol,
        check_undefined_grad,
        check_grad_dtypes,
        check_batched_grad,
        False,
        check_fwd_over_rev,
        check_rev_over_rev,
        fast_mode,
        masked,
        seed(),
    )
    backward = Backward(func, as_tuple(inputs), options.seed)
    if grad_outputs is None:
        backward.draw_cotangents(strided=gen_non_contig_grad_outputs)
    else:
        backward.cotangents = as_tuple(grad_outputs)
    args = (*backward.args, *backward.cotangents)
    try:
        verify(backward, args, options, knowledge=backward.knowledge)
    except GradcheckError as error:
        if not raise_exception:
            return False
        note = backward.first_order(options)
        notes = [f"note: {note}" if note else "", ONCE if backward.refuses else ""]
        raise GradcheckError("\n".join([str(error), *filter(None, notes)])) from error.__cause__
    note = "" if fast_mode else backward.first_order(options)
    if note:
        warn(f"gradgradcheck passes, but {note}")
    return True
