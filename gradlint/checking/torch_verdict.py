"""The verdict of torch's own gradcheck and gradgradcheck, compared with ours."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch.autograd.gradcheck import GradcheckError

from gradlint.experiments.subject import Subject
from gradlint.model.report import TorchVerdict
from gradlint.trace.op_io import OpRaised

#: Slow mode is run where its predicted time stays below this many seconds (heuristic: it keeps
#: torch's verdict a fraction of the whole check).
AFFORDABLE_S = 0.15

#: Up to this many input and output elements it usually takes a fraction of that, and it is run
#: within the second number of seconds: which mode it is must not change with what else the machine
#: does.
FEW_ELEMENTS, AFFORDABLE_FEW_S = 64, 5.0

#: Slow mode holds 7 to 9 float64 Jacobians of N×M; beyond this many elements fast mode is used.
LARGEST_JACOBIAN = 2**20

#: Beyond this many input and output elements torch is not asked at all.
LARGEST = 2**22

#: Calls that fast mode makes at most for each pair of input and output (heuristic: 5 to 12 were
#: seen). Where it fails, it goes on to slow mode for the sake of its message, whatever that takes.
FAST_CALLS = 64

#: Arguments that suit a dtype. float64: torch's own defaults. Below: steps and tolerances at which
#: correct softmax, square and layer norm pass while a gradient of the wrong size does not.
ARGUMENTS: dict[torch.dtype, dict[str, float]] = {
    torch.float64: {},
    torch.float32: {"eps": 1e-2, "atol": 1e-2, "rtol": 1e-2},
    torch.float16: {"eps": 1e-1, "atol": 5e-2, "rtol": 5e-2},
    torch.bfloat16: {"eps": 2e-1, "atol": 1.5e-1, "rtol": 1.5e-1},
}

#: In the texts by which torch says that the numbers differ.
_ABOUT_VALUES = re.compile(r"Jacobian|expected to be zero|not multiplied by grad_output")

#: Used where the op changed the very tensors that torch differentiates at.
WRITES_TO_INPUT = (
    "gradlint is right: the op writes to its input (GL601), from which gradcheck takes one "
    "difference after another; gradlint hands it copies"
)

#: Used where torch fails an op whose numbers gradlint confirmed, for another reason than these.
NOT_ABOUT_VALUES = "that is not about the values, which gradlint confirmed"
CALL_RAISED = (
    "no verdict on the values, which gradlint confirmed: calling the op in torch's way raised"
)


class _FastModeFailed(Exception):
    """Fast mode has failed, and goes on to slow mode."""


@dataclass
class _Call:
    """The op as torch's checker calls it.

    Args:
        inputs: number of differentiable inputs; outputs: names of the differentiable outputs.
        elements: of inputs and outputs, each; forward_s, both_s: seconds of a forward call, and
            of one with its backward.
    """

    inputs: int
    outputs: list[str]
    elements: tuple[int, int]
    forward_s: float
    both_s: float


def torch_verdict(subject: Subject, name: str, ours: str) -> TorchVerdict:
    """What ``torch.autograd.<name>`` says, and who is right where it disagrees with us.

    Args:
        name: "gradcheck" or "gradgradcheck".
        ours: our verdict on the same order: "pass", "fail" or another.
    """
    problem = subject.problem
    if not problem.inputs:
        return TorchVerdict("slow", "skipped", "no input requires grad")
    if problem.has_sparse_inputs and name == "gradgradcheck":
        return TorchVerdict("slow", "skipped", "it can't judge sparse inputs")
    try:
        call = _timed_call(subject)
    except OpRaised as raised:
        return TorchVerdict("slow", "skipped", f"{raised.phase} raises")
    if not call.outputs:
        return TorchVerdict("slow", "skipped", "no output is differentiable")
    if sum(call.elements) > LARGEST:
        elements = sum(call.elements)
        return TorchVerdict("fast", "skipped", f"{elements} elements are more than it can judge")
    return _asked(subject, name, ours, call, _mode(name, call))


def _timed_call(subject: Subject) -> _Call:
    """One forward and one backward, timed. Raises OpRaised."""
    problem = subject.problem
    started = time.perf_counter()
    leaves, outputs = problem.linearize()
    chosen = [item for item in outputs if item.differentiable]
    forward_s = time.perf_counter() - started
    if chosen:
        problem.backward(chosen, leaves, [torch.ones_like(item.value) for item in chosen])
    both_s = time.perf_counter() - started
    if subject.plan.call_s is not None:  # the machine may have stalled just now
        forward_s, both_s = (min(s, subject.plan.call_s) for s in (forward_s, both_s))
    elements = (
        sum(leaf.numel() for leaf in leaves),
        sum(item.value.numel() for item in chosen),
    )
    return _Call(len(leaves), [item.name for item in chosen], elements, forward_s, both_s)


def _mode(name: str, call: _Call) -> Literal["slow", "fast"]:
    """Slow mode where it is affordable."""
    n, m = call.elements
    calls_s = 2 * n * call.forward_s + 2 * m * call.both_s
    if name == "gradgradcheck":
        calls_s = (2 * (n + m) + 2 * n) * 2 * call.both_s
    affordable_s = AFFORDABLE_FEW_S if n + m <= FEW_ELEMENTS else AFFORDABLE_S
    return "slow" if calls_s <= affordable_s and n * m <= LARGEST_JACOBIAN else "fast"


def _asked(
    subject: Subject, name: str, ours: str, call: _Call, mode: Literal["slow", "fast"]
) -> TorchVerdict:
    """The verdict of torch's checker in ``mode``, with a word on who is right."""
    problem = subject.problem
    left = FAST_CALLS * (call.inputs + 1) * (len(call.outputs) + 1)

    def function(*values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        nonlocal left
        left -= 1
        if left < 0 and mode == "fast":
            raise _FastModeFailed
        found = problem.connect(values)
        return tuple(item.value for item in found if item.name in call.outputs)

    inputs = tuple(value.detach().clone().requires_grad_() for value in problem.values())
    check: Callable[..., bool] = getattr(torch.autograd, name)
    arguments: dict[str, Any] = dict(ARGUMENTS.get(_coarsest_real_dtype(inputs), {}))
    arguments["fast_mode"] = mode == "fast"
    broke = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            check(function, inputs, **arguments)
            verdict = TorchVerdict(mode, "pass")
        except _FastModeFailed:
            verdict = TorchVerdict(mode, "fail", "Jacobian mismatch in fast mode")
        except Exception as error:
            verdict = TorchVerdict(mode, "fail", _first_line(error))
            broke = not isinstance(error, GradcheckError)
    if verdict.verdict == "fail" and ours == "pass":
        verdict.agreement = _why_torch_fails(subject, verdict, inputs, broke=broke)
    verdict.agreement = verdict.agreement or _agreement(name, mode, verdict.verdict, ours)
    return verdict


def _why_torch_fails(
    subject: Subject, verdict: TorchVerdict, inputs: tuple[torch.Tensor, ...], *, broke: bool
) -> str:
    """Why torch rejects an op that gradlint confirmed; empty where its numbers are the reason."""
    wrote = any(
        not torch.equal(now.detach(), before)
        for now, before in zip(inputs, subject.problem.values(), strict=True)
        if now.layout == torch.strided and not now.is_nested and bool(before.isfinite().all())
    )
    if broke:
        return CALL_RAISED
    if wrote:
        return WRITES_TO_INPUT
    if not _ABOUT_VALUES.search(verdict.message):
        return NOT_ABOUT_VALUES
    if subject.op.intent.surrogate:
        return "gradlint is right: a surrogate is declared, which gradcheck can't know"
    return ""


def _agreement(name: str, mode: str, theirs: str, ours: str) -> str:
    if {theirs, ours} == {"pass"} or {theirs, ours} == {"fail"}:
        return "agrees"
    if theirs == "pass" and ours == "fail":
        if name == "gradgradcheck":
            return "gradlint is right: a finding above shows numbers that torch did not look at"
        return (
            "gradlint is right: fast mode scales its tolerance with the size of the tensors"
            if mode == "fast"
            else "gradlint is right: the finding is outside what gradcheck looks at or tolerates"
        )
    if theirs == "fail" and ours == "pass":
        return (
            "gradlint is right: it confirmed the gradient with measured error bars; gradcheck's "
            "fixed step and tolerance do not suit this op"
        )
    return ""


def _coarsest_real_dtype(inputs: tuple[torch.Tensor, ...]) -> torch.dtype:
    kinds = {torch.complex128: torch.float64, torch.complex64: torch.float32}
    found = [kinds.get(value.dtype, value.dtype) for value in inputs]
    return min(found, key=lambda dtype: -torch.finfo(dtype).eps)


def _first_line(error: BaseException) -> str:
    try:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    except BaseException:
        return type(error).__name__
    return lines[0].rstrip(" ,:") if lines else type(error).__name__
