"""``gradlint.gradcheck``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch.autograd.gradcheck import GradcheckError

from gradlint.dropin._arguments import as_tuple
from gradlint.dropin._batched import check_batched, check_batched_forward
from gradlint.dropin._exact import check_again, check_undefined, check_zero
from gradlint.dropin._forward import check_forward, check_undefined_tangents
from gradlint.dropin._function import Function, Knowledge
from gradlint.dropin._inputs import DOUBLE, check_inputs, unrepresentable, unrepresentable_outputs
from gradlint.dropin._options import ATOL, EPS, NONDET_TOL, RTOL, Options, seed
from gradlint.dropin._torch import ask_torch
from gradlint.dropin._values import check_disconnected, check_each_output, check_values
from gradlint.dropin.failure import Failure, inform, raise_failures


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = EPS,
    atol: float = ATOL,
    rtol: float = RTOL,
    raise_exception: bool = True,
    nondet_tol: float = NONDET_TOL,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check the gradients of ``func`` at ``inputs``: ``torch.autograd.gradcheck`` with verdicts
    based on measured error bars, at about the cost of its fast mode.

    It is meant to differ from torch only where torch is wrong. In every dtype, gradients are judged
    with an error bar that is measured on ``func`` itself, not at a fixed step within a fixed
    tolerance; the bar does not grow with the size of the tensors. Kinks are recognised. Random
    numbers drawn inside ``func`` are the same at every call. ``inputs`` are restored afterwards,
    whatever ``func`` raises.

    If gradlint cannot judge a function (because it is too noisy or not smooth at the inputs),
    torch's own slow path does, provided that it is affordable and in double precision; a failure
    there is raised. If neither can judge, True is returned with an :class:`InconclusiveWarning`: a
    suite that runs under torch keeps running, and a filter (see there) turns the warning into a
    failure, as ``--fail-on inconclusive`` does on the command line.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors.
        inputs: its arguments; those that require grad are checked. Other values, and tensors in
            nested lists, tuples and dicts, are passed on.
        eps, atol, rtol: if set, they also make gradlint accept a gradient that torch's slow mode
            accepts with them, or whose elements are all within atol + rtol·|derivative|.
        raise_exception: False to return False instead of raising GradcheckError.
        nondet_tol: how far two runs of backward may differ.
        check_undefined_grad: whether undefined output gradients must count as zeros.
        check_grad_dtypes: whether gradients must have the dtypes of the inputs.
        check_batched_grad: whether ``vmap`` over backward must agree with a loop.
        check_batched_forward_grad: whether ``vmap`` over forward mode must agree with a loop.
        check_forward_ad: whether forward mode is checked.
        check_backward_ad: whether reverse mode is checked.
        fast_mode: whether fewer measurements suffice, so that a passing check takes at most about
            twice the calls and the time of torch's fast mode; it sees single wrong elements too.
        masked: whether unspecified elements of sparse inputs are left alone.

    Returns:
        True; False on a failure where ``raise_exception`` is False.

    Raises:
        GradcheckError: a check failed; the message begins as torch's does.
        ValueError, RuntimeError: the inputs or outputs cannot be checked, as in torch.
    """
    options = Options(
        "gradcheck",
        eps,
        atol,
        rtol,
        nondet_tol,
        check_undefined_grad,
        check_grad_dtypes,
        check_batched_grad,
        check_batched_forward_grad,
        check_forward_ad,
        check_backward_ad,
        fast_mode,
        masked,
        seed(),
    )
    try:
        verify(func, as_tuple(inputs), options)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def verify(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    options: Options,
    *,
    knowledge: Knowledge | None = None,
) -> None:
    """Run every check that ``options`` ask for.

    Args:
        knowledge: what is known about the function beforehand.

    Raises:
        GradcheckError: a check failed.
    """
    reason = unrepresentable(args)
    if reason:
        _delegate(func, args, options, reason)
        return
    check_inputs(args)
    function = Function(func, args, masked=bool(options.masked), knowledge=knowledge)
    try:
        function.start()
        reason = unrepresentable_outputs(function.outputs)
        if reason:
            _delegate(func, args, options, reason)
            return
        if not function.differentiable:
            check_disconnected(function, options)
            return
        failures = _run_all(function, options)
        if not failures and function.filled_up and not options.tolerant:
            _ask_about_filled_up(function, options)
    finally:
        function.restore()
    if failures:
        raise_failures(failures, options)


def _run_all(function: Function, options: Options) -> list[Failure]:
    """Run every check that ``options`` ask for, in torch's order. Once one has failed, exceptions
    of the others are ignored, because a wrong backward may raise anything."""
    failures = changes(function)
    for check in _checks(options):
        try:
            failures += check(function, options, not failures)
        except Exception:
            if not failures:
                raise
    return failures


def _checks(options: Options) -> Iterator[Callable[[Function, Options, bool], list[Failure]]]:
    """The checks; each takes the function, the options, and whether nothing has failed so far."""
    reverse = options.check_backward_ad
    if reverse:
        yield lambda function, options, _: list(check_again(function, options))
        yield lambda function, options, _: check_values(function, options)
        yield lambda function, options, well: check_each_output(function, options) if well else []
    if options.check_forward_ad:
        yield lambda function, options, well: check_forward(function, options, reverse and well)
        if options.check_undefined_grad:
            yield lambda function, options, _: check_undefined_tangents(function, options)
    if options.check_batched_forward_grad:
        yield lambda function, options, _: check_batched_forward(function, options)
    if reverse and options.check_batched_grad:
        yield lambda function, options, _: check_batched(function, options)
    if reverse:
        yield lambda function, options, _: list(check_zero(function, options))
    if reverse and options.check_undefined_grad:
        yield lambda function, options, well: list(check_undefined(function, warned=well))


def _ask_about_filled_up(function: Function, options: Options) -> None:
    """Ask torch too about unmasked sparse inputs in low precision, if the call leaves its step and
    tolerances at their defaults: torch rejects them there nearly always, and says so in a warning.

    Raises:
        GradcheckError: torch's verdict.
    """
    if any(value.dtype not in DOUBLE for value in function.values):
        ask_torch(function.call, function.args, options, everything=True, function=function)


def _delegate(
    func: Callable[..., Any], args: tuple[Any, ...], options: Options, reason: str
) -> None:
    inform(f"torch's own {options.name} checks this, not gradlint: {reason}")
    ask_torch(func, args, options, everything=True)


def changes(function: Function) -> list[Failure]:
    """A failure for each input that a call changes in place without autograd's knowledge."""
    return [
        Failure(
            f"Input {place} is changed in place by the function without autograd's knowledge",
            ["clone the input before changing it, or declare it with ctx.mark_dirty"],
        )
        for place in function.changes_in_place
    ]
