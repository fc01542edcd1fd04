"""``gradlint.gradgradcheck``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.gradcheck import GradcheckError
from torch.overrides import is_tensor_like

from gradlint.dropin._arguments import as_tuple, outputs_of
from gradlint.dropin._gradcheck import verify
from gradlint.dropin._options import ATOL, EPS, NONDET_TOL, RTOL, Options, seed


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
    right: for that there is gradcheck.

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
    args = as_tuple(inputs)
    if grad_outputs is None:
        cotangents = _random_cotangents(func, args, options.seed, gen_non_contig_grad_outputs)
    else:
        cotangents = as_tuple(grad_outputs)
    try:
        verify(_backward_of(func, args, cotangents), (*args, *cotangents), options)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _random_cotangents(
    func: Callable[..., Any], args: tuple[Any, ...], number: int, strided: bool
) -> tuple[torch.Tensor, ...]:
    """One cotangent a differentiable output, uniform in [−1, 1] as in torch.

    Args:
        number: seed.
        strided: whether they are non-contiguous.
    """
    generator = torch.Generator().manual_seed(number)
    found = []
    for y in outputs_of(func(*args)):
        if not y.requires_grad:
            continue
        wide = torch.complex128 if y.is_complex() else torch.float64
        shape = (*y.shape, 2) if strided and y.numel() > 1 else tuple(y.shape)
        drawn = torch.rand(shape, generator=generator, dtype=wide) * 2 - 1
        if y.is_complex():
            drawn = drawn - 1j * (drawn.real + 1) / 2
        drawn = drawn.to(device=y.device, dtype=y.dtype)
        found.append((drawn[..., 0] if shape != tuple(y.shape) else drawn).requires_grad_())
    return tuple(found)


def _backward_of(
    func: Callable[..., Any], args: tuple[Any, ...], cotangents: tuple[Any, ...]
) -> Callable[..., tuple[torch.Tensor, ...]]:
    """(inputs, cotangents) ↦ the gradients of the inputs that have one."""
    count = len(cotangents)
    moving = [k for k, x in enumerate(args) if is_tensor_like(x) and x.requires_grad]
    weighing = [
        k for k, v in enumerate(cotangents) if isinstance(v, torch.Tensor) and v.requires_grad
    ]

    def backward(*values: Any) -> tuple[torch.Tensor, ...]:
        xs, vs = list(values[: len(values) - count]), list(values[len(values) - count :])
        # Forward mode passes tensors that require no grad: they must, for backward to be run.
        for k in moving:
            xs[k] = xs[k].requires_grad_()
        for k in weighing:
            vs[k] = vs[k].requires_grad_()
        outputs = [y for y in outputs_of(func(*xs)) if y.requires_grad]
        grads = torch.autograd.grad(
            outputs, [xs[k] for k in moving], vs, create_graph=True, allow_unused=True
        )
        return tuple(grad for grad in grads if grad is not None)

    return backward
