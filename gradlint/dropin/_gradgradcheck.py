"""``gradlint.gradgradcheck``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.autograd.gradcheck import GradcheckError

from gradlint.dropin._arguments import as_tuple
from gradlint.dropin._backward import Backward
from gradlint.dropin._gradcheck import verify, warn
from gradlint.dropin._options import ATOL, EPS, NONDET_TOL, RTOL, Options, seed

#: Said where backward is marked so.
ONCE = (
    "note: backward is marked @once_differentiable, which refuses second derivatives: write it "
    "with differentiable operations and drop the mark, or leave gradgradcheck out"
)


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

    As in torch, what is checked is whether backward is differentiated rightly, not whether it is
    right: for that there is gradcheck. Where a glance shows that backward itself is wrong, the
    message of a failure says so, and a pass comes with an :class:`InconclusiveWarning`.

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
        ValueError, RuntimeError: inputs or outputs that can't be checked, as in torch.
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
        note = backward.first_order()
        notes = [f"note: {note}" if note else "", ONCE if backward.refuses else ""]
        raise GradcheckError("\n".join([str(error), *filter(None, notes)])) from error.__cause__
    note = backward.first_order()
    if note:
        warn(f"gradgradcheck passes, but {note}")
    return True
