"""GL802 to GL806: what can be seen without a GPU, and, marked ``cuda``, what needs one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.experiments import preconditions
from gradlint.experiments.baseline_comparison import make_baseline
from gradlint.experiments.device.cuda_runs import differences
from gradlint.experiments.device.tiled_sample import TiledRun, run_beyond_limit
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome, Rule
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import by_code
from gradlint.rules.device import devices_disagree, index_overflow
from gradlint.targets.build import from_object
from gradlint.trace.op_io import OpRaised

X = torch.tensor([[0.7, -1.3, 2.1, 0.4], [-0.2, 1.6, -2.4, 0.9], [1.1, -0.6, 0.3, -1.8]])
RULES = [by_code(code) for code in ("GL802", "GL803", "GL804", "GL806")]
PLENTY = 2**33

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


class Sine(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * x.cos()


class OnCuda(Sine):
    """Another gradient on cuda."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * x.cos() * (2 if x.is_cuda else 1)


class DefaultStream(Sine):
    """Forward on the default stream."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        with torch.cuda.stream(torch.cuda.default_stream()):
            return x.sin()


class DefaultStreamInBackward(Sine):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        with torch.cuda.stream(torch.cuda.default_stream()):
            return g * x.cos()


class Waits(Sine):
    """Waits for the device."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        float(x.sum())
        return x.sin()


def wraps(limit: int, *, in_backward: bool = False) -> Any:
    """Sine whose elements from ``limit`` on are those at the start: an index wrapped around."""

    def wrapped(t: Tensor) -> Tensor:
        flat = t.flatten().clone()
        if flat.numel() > limit:
            flat[limit:] = 0.5
        return flat.view_as(t)

    class Wraps(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x.sin() if in_backward else wrapped(x.sin())

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return wrapped(g * x.cos()) if in_backward else g * x.cos()

    return Wraps


def on_cuda(op: Any, x: Tensor = X, dtype: torch.dtype = torch.float64) -> Subject:
    sample = Sample("s", "sample_inputs", (x.to("cuda", dtype).requires_grad_(),))
    return Subject(from_object(op), sample, Settings(seed=1, devices=("cuda",)))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_without_cuda_the_reason_is_told(probed: Callable[..., Outcome], rule: Rule) -> None:
    outcome = probed(rule, Sine, X)
    assert outcome.verdict == "skipped"
    assert "cuda" in outcome.note
    assert (outcome.findings, outcome.resolution) == ([], None)


# -- comparing with the ordinary run -------------------------------------------------------------


def test_what_differs_is_reported(subject: Callable[..., Subject]) -> None:
    bound = subject(Sine, X)
    base = bound.once(make_baseline)
    assert base is not None
    assert differences(bound, base.outputs, base.gradients) == ([], [])
    rounded = {name: v * (1 + 1e-9) for name, v in base.outputs.items()}
    assert differences(bound, rounded, [g * (1 + 1e-9) for g in base.gradients]) == ([], [])
    spoiled = base.gradients[0].clone()
    spoiled[1, 2] = -spoiled[1, 2]
    outputs, gradients = differences(bound, {"output": base.outputs["output"] + 1}, [spoiled])
    assert (outputs[0].count, outputs[0].kind) == (12, "value")
    assert (gradients[0].index, gradients[0].count) == ([1, 2], 1)


def test_nan_is_a_difference(subject: Callable[..., Subject]) -> None:
    bound = subject(Sine, X, dtype=torch.float32)
    base = bound.once(make_baseline)
    assert base is not None
    outputs, _ = differences(bound, {"output": base.outputs["output"] * torch.nan}, base.gradients)
    assert outputs[0].kind == "NaN"


def test_outputs_and_gradients_are_compared(
    subject: Callable[..., Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Later(Sine):
        """Another op than the one that the ordinary run saw."""

        shift, factor = 0.0, 1.0

        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return Sine.forward(ctx, x) + Later.shift

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return Sine.backward(ctx, g) * Later.factor

    monkeypatch.setattr(devices_disagree, "why_not_on_cuda", lambda subject: "")
    bound = subject(Later, X)
    assert bound.once(make_baseline) is not None
    rule = by_code("GL802")
    assert rule.probe(bound).findings == []
    Later.shift, Later.factor = 0.5, 3.0
    output, gradient = rule.probe(bound).findings
    assert output.message == "`output` differs between cpu and cuda (12 of 12 elements)"
    assert (output.output, output.input, output.severity) == ("output", None, "error")
    row = output.evidence["elements"][0]
    assert row["returned"] - row["expected"] == pytest.approx(0.5)
    assert gradient.message == "gradient for `x` differs between cpu and cuda (12 of 12 elements)"
    assert (gradient.output, gradient.input) == (None, "x")
    row = gradient.evidence["elements"][0]
    assert row["returned"] == pytest.approx(3 * row["expected"])


def test_ops_that_draw_random_numbers_differ_between_devices(
    subject: Callable[..., Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(preconditions, "_is_on_cuda", lambda subject: True)
    drawing = subject(torch.nn.Dropout(0.5), X)
    assert "draws random numbers" in preconditions.why_not_on_cuda(drawing)
    assert preconditions.why_not_on_cuda(drawing, may_draw=True) == ""
    assert preconditions.why_not_on_cuda(subject(Sine, X)) == ""


# -- GL806, its threshold lowered ----------------------------------------------------------------


@pytest.mark.parametrize("in_backward", [False, True])
def test_an_index_that_wraps_around(subject: Callable[..., Subject], in_backward: bool) -> None:
    bound = subject(wraps(10_000, in_backward=in_backward), X)
    found = run_beyond_limit(bound, limit=10_000, free_bytes=PLENTY)
    assert found.reason == ""
    (block,) = found.wrong
    assert block.what == ("gradient" if in_backward else "output")
    assert 10_000 <= block.element < 10_012
    assert block.number == block.element // 12
    outcome = index_overflow.judged(bound, found)
    (finding,) = outcome.findings
    assert (outcome.verdict, finding.severity) == ("fail", "error")
    assert f"from element {block.element} on" in finding.message


def test_right_ops_pass_on_many_elements(subject: Callable[..., Subject]) -> None:
    for op in (Sine, lambda x: x.softmax(-1), lambda x: x.sum(-1)):
        bound = subject(op, X)
        found = run_beyond_limit(bound, limit=10_000, free_bytes=PLENTY)
        assert (found.reason, found.raised, found.wrong) == ("", None, [])
        assert found.elements > 10_000
        assert index_overflow.judged(bound, found).verdict == "pass"


def test_gradients_of_what_is_not_repeated_are_left_alone(subject: Callable[..., Subject]) -> None:
    bound = subject(lambda x, w: x @ w, X, torch.ones(4, 2))
    found = run_beyond_limit(bound, limit=10_000, free_bytes=PLENTY)
    assert (found.reason, found.wrong) == ("", [])


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        (lambda x: x.softmax(0), "not computed by themselves"),
        (lambda x: x.sum(), "not computed by themselves"),
        (lambda x: x.cumsum(0), "not computed by themselves"),
    ],
)
def test_ops_over_the_first_axis_are_left_out(
    subject: Callable[..., Subject], op: Any, reason: str
) -> None:
    assert reason in run_beyond_limit(subject(op, X), limit=10_000, free_bytes=PLENTY).reason


def test_memory_is_asked_for_first(subject: Callable[..., Subject]) -> None:
    found = run_beyond_limit(subject(Sine, X), free_bytes=2**30)
    assert found.reason.startswith("needs about ")
    assert index_overflow.judged(subject(Sine, X), found).verdict == "skipped"


def test_a_refusal_is_information_and_a_crash_a_fault(subject: Callable[..., Subject]) -> None:
    bound = subject(Sine, X)
    for text, verdict, severity in (
        ("CUDA error: an illegal memory access was encountered", "fail", "error"),
        ("more than 2**31 elements are not supported", "pass", "info"),
    ):
        raised = OpRaised("forward", RuntimeError(text))
        outcome = as_loud_as_evidence(
            index_overflow.judged(bound, TiledRun(raised=raised, elements=2**31 + 5))
        )
        assert (outcome.verdict, outcome.findings[0].severity) == (verdict, severity)
        assert text in outcome.findings[0].message


# -- on a GPU ------------------------------------------------------------------------------------


@pytest.mark.cuda
@needs_cuda
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_devices_disagree(dtype: torch.dtype) -> None:
    rule = by_code("GL802")
    (finding,) = rule.probe(on_cuda(OnCuda, dtype=dtype)).findings
    assert (finding.input, finding.severity) == ("x", "error")
    outcome = rule.probe(on_cuda(Sine, dtype=dtype))
    assert (outcome.verdict, outcome.findings) == ("pass", [])


@pytest.mark.cuda
@needs_cuda
@pytest.mark.parametrize(
    ("op", "verdict"),
    [
        (Sine, "pass"),
        (DefaultStream, "fail"),
        (DefaultStreamInBackward, "fail"),
        (Waits, "inconclusive"),
        (lambda x: x.softmax(-1) @ x.mT, "pass"),
    ],
)
def test_streams(op: Any, verdict: str) -> None:
    outcome = by_code("GL803").probe(on_cuda(op))
    assert outcome.verdict == verdict, outcome.note
    assert len(outcome.findings) == (verdict == "fail")


@pytest.mark.cuda
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_current_device() -> None:
    class OnCurrent(Sine):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return torch.zeros(x.shape, dtype=x.dtype, device="cuda") + 1

    rule = by_code("GL804")
    assert rule.probe(on_cuda(Sine)).verdict == "pass"
    assert rule.probe(on_cuda(OnCurrent)).verdict == "fail"


@pytest.mark.cuda
@needs_cuda
def test_one_device_is_not_enough() -> None:
    if torch.cuda.device_count() > 1:
        pytest.skip("more than one CUDA device")
    outcome = by_code("GL804").probe(on_cuda(Sine))
    assert (outcome.verdict, outcome.note) == ("skipped", "needs two GPUs: one is here")


@pytest.mark.cuda
@needs_cuda
def test_more_elements_than_32_bits_count() -> None:
    rule = by_code("GL806")
    x = torch.randn(64, 1024, generator=torch.Generator().manual_seed(0))
    right = rule.probe(on_cuda(Sine, x, torch.bfloat16))
    if right.verdict == "skipped":
        pytest.skip(right.note)
    assert (right.verdict, right.findings) == ("pass", [])
    (finding,) = rule.probe(on_cuda(wraps(2**31), x, torch.bfloat16)).findings
    assert "2147483648" in finding.message
