"""The verdict of torch's own gradcheck and gradgradcheck, compared with ours."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck

from gradlint.base.clock import had_seconds
from gradlint.base.notes import WITHOUT_CASTS
from gradlint.experiments.state.guarded_run import make_guarded
from gradlint.experiments.subject import Subject
from gradlint.model.events import Begin, Emit, TorchCheck, TorchVerdictMade
from gradlint.model.report import TorchVerdict
from gradlint.ops.phase import phase
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

#: torch's checks by name, bound when this module is imported: code of the op may put others in
#: their place, gradlint's own among them.
_CHECKS: dict[str, Callable[..., bool]] = {
    "gradcheck": gradcheck,
    "gradgradcheck": gradgradcheck,
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

OTHER_MEASUREMENT = (
    "gradlint confirmed the gradient here with several steps and measured error bars, gradcheck "
    "takes one step"
)

#: Used where gradlint sees a difference on this sample too, and takes it for information.
SEEN_AS_INFORMATION = (
    "gradlint sees a difference here too, and says under GL401 why that is no fault"
)

JUDGED_WITHOUT_CASTS = (
    "the op computes in a coarser dtype inside, and gradcheck sees that; gradlint judged its"
    " formula without these casts"
)

#: A step and tolerances for asking again where the verdicts differ (heuristic): the truncation of
#: the one and the roundoff of torch's own step, 1e-10 relative to the outputs, stay below.
LARGER_STEP = 1e-4
SHARPER = {"atol": 1e-7, "rtol": 1e-5}


class _FastModeFailed(Exception):
    """Fast mode has failed, and goes on to slow mode."""


@contextmanager
def _torch_calls_its_own() -> Iterator[None]:
    """In the body, torch's gradgradcheck calls torch's gradcheck, even if the op has put another in
    the module of both."""
    home = sys.modules[gradcheck.__module__]
    replaced = home.__dict__["gradcheck"]
    home.__dict__["gradcheck"] = gradcheck
    try:
        yield
    finally:
        home.__dict__["gradcheck"] = replaced


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


def torch_verdict(
    subject: Subject, name: str, ours: str, failing: Collection[str] = ()
) -> TorchVerdict:
    """What ``torch.autograd.<name>`` says on this sample, and what is known where it disagrees
    with us.

    Args:
        name: "gradcheck" or "gradgradcheck".
        ours: our verdict on the same order: "pass", "fail" or another.
        failing: codes of the checks of that order that failed.
    """
    verdict = _verdict(subject, name, ours, failing)
    verdict.sample = subject.sample.label
    return verdict


def _verdict(subject: Subject, name: str, ours: str, failing: Collection[str]) -> TorchVerdict:
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
    asked = _Asked(subject, name, call, _mode(name, call))
    verdict = asked.verdict()
    verdict.agreement = _agreement(subject, verdict, ours, asked, failing)
    return verdict


def _agreement(
    subject: Subject, verdict: TorchVerdict, ours: str, asked: _Asked, failing: Collection[str]
) -> str:
    """What is known of who is right, from what was run on this sample."""
    theirs = verdict.verdict
    measured = {"GL401"} if asked.name == "gradcheck" else {"GL501", "GL502"}
    only_other_codes = bool(failing) and measured.isdisjoint(failing) and _all_judged(subject)
    if theirs == "fail" and ours == "fail" and only_other_codes:
        about_values = bool(_ABOUT_VALUES.search(verdict.message)) and not asked.broke
        return _why_torch_fails(subject, verdict, asked) if about_values else "agrees"
    if theirs == ours:
        return "agrees"
    if theirs == "fail" and ours == "pass" and _all_judged(subject):
        return _why_torch_fails(subject, verdict, asked)
    if theirs == "pass" and ours == "fail":
        return _why_torch_passes(subject, asked, failing)
    return ""


def _all_judged(subject: Subject) -> bool:
    """Whether gradlint has judged the gradient of every input: what it left out, it can't say to be
    right."""
    declared = len(
        set(subject.op.intent.surrogate or {}) & {i.name for i in subject.problem.inputs}
    )
    return len(subject.judged) + declared == len(subject.problem.inputs)


def _timed_call(subject: Subject) -> _Call:
    """One forward and one backward, timed. Raises OpRaised."""
    problem = subject.problem
    started = had_seconds()
    leaves, outputs = problem.linearize()
    chosen = [item for item in outputs if item.differentiable]
    forward_s = had_seconds() - started
    if chosen:
        problem.backward(chosen, leaves, [torch.ones_like(item.value) for item in chosen])
    both_s = had_seconds() - started
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


class _Asked:
    """torch's checker on one sample, asked once or again with other arguments."""

    def __init__(
        self, subject: Subject, name: str, call: _Call, mode: Literal["slow", "fast"]
    ) -> None:
        self.name, self.mode = name, mode
        self._problem = subject.problem
        self._call = call
        self._left = 0
        self.inputs = self._fresh()
        self.dtype = _coarsest_real_dtype(self.inputs)
        #: Whether the call raised something other than torch's own complaint.
        self.broke = False

    def verdict(self, **arguments: float) -> TorchVerdict:
        """What torch says with these arguments in place of those that suit the dtype."""
        self._left = FAST_CALLS * (self._call.inputs + 1) * (len(self._call.outputs) + 1)
        self.inputs = self._fresh()
        given: dict[str, Any] = {**ARGUMENTS.get(self.dtype, {}), **arguments}
        given["fast_mode"] = self.mode == "fast"
        self.broke = False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                with _torch_calls_its_own():
                    self._problem.binding.while_at(
                        self.inputs,
                        lambda: _CHECKS[self.name](self._function, self.inputs, **given),
                    )
            except _FastModeFailed:
                return TorchVerdict(self.mode, "fail", "Jacobian mismatch in fast mode")
            except Exception as error:
                self.broke = not isinstance(error, GradcheckError)
                return TorchVerdict(self.mode, "fail", _first_line(error))
        return TorchVerdict(self.mode, "pass")

    def _fresh(self) -> tuple[torch.Tensor, ...]:
        return tuple(v.detach().clone().requires_grad_() for v in self._problem.values())

    def _function(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self._left -= 1
        if self._left < 0 and self.mode == "fast":
            raise _FastModeFailed
        found = self._problem.connect(values)
        return tuple(item.value for item in found if item.name in self._call.outputs)


def _is_judged_without_casts(subject: Subject) -> bool:
    notes = subject.first_order.notes.values() if subject.first_order_is_known else ()
    return any(WITHOUT_CASTS in note for note in notes)


def _why_torch_fails(subject: Subject, verdict: TorchVerdict, asked: _Asked) -> str:
    """Why torch rejects an op whose gradients gradlint confirmed on the same sample."""
    wrote = any(
        not torch.equal(now.detach(), before)
        for now, before in zip(asked.inputs, subject.problem.values(), strict=True)
        if now.layout == torch.strided and not now.is_nested and bool(before.isfinite().all())
    )
    found = OTHER_MEASUREMENT
    if asked.broke:
        found = CALL_RAISED
    elif wrote:
        found = WRITES_TO_INPUT
    elif not _ABOUT_VALUES.search(verdict.message):
        found = NOT_ABOUT_VALUES
    elif asked.name == "gradcheck" and _sees_a_difference(subject):
        found = SEEN_AS_INFORMATION
    elif asked.name == "gradcheck" and _is_judged_without_casts(subject):
        found = JUDGED_WITHOUT_CASTS
    elif subject.op.intent.surrogate:
        found = "gradlint is right: a surrogate is declared, which gradcheck can't know"
    elif asked.dtype == torch.float64 and asked.verdict(eps=LARGER_STEP).verdict == "pass":
        found = f"gradlint is right: with eps={LARGER_STEP:g} in place of 1e-06 it passes too"
    return found


def _sees_a_difference(subject: Subject) -> bool:
    """Whether a gradient differs from what was measured on this sample."""
    return subject.first_order_is_known and bool(subject.wrong_inputs)


def _why_torch_passes(subject: Subject, asked: _Asked, failing: Collection[str]) -> str:
    """Why torch accepts an op that gradlint fails, as far as asking it again can tell."""
    here = _sees_a_difference(subject) if asked.name == "gradcheck" else "GL501" in failing
    codes = ", ".join(sorted(failing))
    if not here:
        return f"{codes or 'the finding'}: seen outside of what {asked.name} was run on"
    if asked.dtype == torch.float64 and asked.verdict(**SHARPER).verdict == "fail":
        told = ", ".join(f"{key}={value:g}" for key, value in SHARPER.items())
        return f"gradlint is right: with {told} it fails too, its own tolerances hide the error"
    return f"the numbers that {codes} shows are outside what {asked.name} measures or tolerates"


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


# -- on which samples they run, and when -----------------------------------------------------------


class TorchAsked:
    """torch's own checks: on the first sample, and where that passes, on the first one that fails,
    so that its verdict stands beside the finding that it is compared with.

    Args:
        emit: called with each verdict.
        done: (check, sample label) pairs not to be run again, after a crash.
    """

    CHECKS: tuple[tuple[TorchCheck, str, tuple[str, ...]], ...] = (
        ("gradcheck", "GL401", ("GL1", "GL2", "GL3", "GL4")),
        ("gradgradcheck", "GL501", ("GL5",)),
    )

    def __init__(self, emit: Emit, done: frozenset[tuple[str, str]]) -> None:
        self._emit, self._done = emit, done
        self._failed: set[str] = set()

    def about(self, subject: Subject, verdicts: dict[str, str], *, first: bool) -> None:
        """Ask torch about the sample of ``subject``, where that is due.

        Args:
            verdicts: code → verdict of the checks on this sample.
        """
        for name, code, families in self.CHECKS:
            failing = [c for c, v in verdicts.items() if v == "fail" and c.startswith(families)]
            due = first or (bool(failing) and name not in self._failed)
            if failing:
                self._failed.add(name)
            label = subject.sample.label
            if not due or code not in verdicts or (name, label) in self._done:
                continue
            if subject.run.error is None:
                self._ask(subject, name, "fail" if failing else verdicts[code], failing)

    def _ask(self, subject: Subject, name: TorchCheck, ours: str, failing: list[str]) -> None:
        label = subject.sample.label
        self._emit(Begin(name, label))
        left_out = ""
        if not subject.plan.torch:
            left_out = f"left out: beyond --max-calls {subject.plan.budget}"
        elif subject.made("make_guarded") and subject.once(make_guarded).freed:
            left_out = "left out: the op frees memory that it is given, which torch's check reads"
        elif subject.problem.fills_grad:
            left_out = "left out: backward leaves gradients in `.grad`, where torch does not look"
        if left_out:
            verdict = TorchVerdict("fast", "skipped", left_out, sample=label)
        else:
            with phase("rule"):
                verdict = torch_verdict(subject, name, ours, failing)
        self._emit(TorchVerdictMade(name, verdict))
