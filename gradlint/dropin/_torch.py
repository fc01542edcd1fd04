"""Run torch's own gradcheck on functions that gradlint cannot represent or decide.

Torch's function is bound when this module is imported, so that a suite which puts gradlint's in its
place (``torch.autograd.gradcheck = gradlint.gradcheck``) still reaches it from here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from torch.autograd.gradcheck import gradcheck as torch_gradcheck

from gradlint.dropin._function import Function
from gradlint.dropin._inputs import DOUBLE
from gradlint.dropin._options import Options
from gradlint.numerics.timing import least_seconds

#: Slow mode is run if its predicted time is below this many seconds (heuristic: people disable
#: tests that take longer).
AFFORDABLE_S = 10.0

#: Largest Jacobian, in elements, for which slow mode is run: it holds 7 to 9 float64 Jacobians at a
#: time, here 300 MB (gradlint/docs/numerics.md, section "torch's own verdict").
LARGEST_JACOBIAN = 2**22


def unaffordable(function: Function, options: Options) -> str:
    """Why torch's slow path is not run; "" if it can be."""
    if not options.tolerant and any(tensor.dtype not in DOUBLE for tensor in function.values):
        return "torch's gradcheck needs double precision unless a step and tolerances are set"
    n = sum(value.numel() for value in function.values)
    m = sum(output.numel() for output in function.outputs)
    if n * m > LARGEST_JACOBIAN:
        return f"torch's slow path would need Jacobians of {n}×{m} elements"
    calls = 2.0 * (n + 2.0 * m)  # a backward costs about two forwards
    enough = AFFORDABLE_S / max(calls, 1.0)
    predicted = calls * least_seconds(lambda: function.call_with({}), enough, most=AFFORDABLE_S)
    if predicted > AFFORDABLE_S:
        return f"torch's slow path would take about {predicted:.0f} s"
    return ""


def ask_torch(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    options: Options,
    *,
    everything: bool = False,
    function: Function | None = None,
    forward_mode: bool = False,
) -> None:
    """Run torch's own gradcheck.

    Args:
        everything: run all checks that ``options`` ask for, in the mode that they ask for; if not,
            only that of the values, in slow mode.
        function: the function, if it is bound already; its tensors are restored whatever torch does
            to them, and its random numbers are the same at every call.
        forward_mode: whether the values are those of forward mode instead of backward.

    Raises:
        GradcheckError: torch's verdict.
    """
    arguments: dict[str, Any] = {
        "eps": float(options.eps),
        "atol": float(options.atol),
        "rtol": float(options.rtol),
        "nondet_tol": float(options.nondet_tol),
        "masked": options.masked,
        "check_undefined_grad": everything and options.check_undefined_grad,
        "check_forward_ad": forward_mode,
        "check_backward_ad": not forward_mode,
    }
    if everything:
        for name in (
            "check_grad_dtypes",
            "check_batched_grad",
            "check_batched_forward_grad",
            "check_forward_ad",
            "check_backward_ad",
            "fast_mode",
        ):
            arguments[name] = getattr(options, name)
    if function is None:
        torch_gradcheck(func, args, **arguments)
        return
    with function.lent(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Input #")
        torch_gradcheck(function.replayed, args, **arguments)
