"""GL2: planted faults and near misses for shape, dtype and device of gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.experiments.subject import Subject
from gradlint.inputs.stand_ins import stand_in
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code

GL201, GL202, GL203, GL204 = (by_code(code) for code in ("GL201", "GL202", "GL203", "GL204"))


def returning(make: Callable[[Tensor], Any]) -> Any:
    """y = 2x, whose backward returns ``make(grad_output)``."""

    class Op(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            return make(g)

    return Op


@pytest.mark.parametrize(
    ("origin", "number", "steps", "expected"),
    [
        ("inferred", 10, 10, "warning"),
        ("inferred", 7, 10, "error"),  # no argument tells where 10 comes from
        ("given", 10, 10, "error"),
    ],
)
def test_a_size_that_an_argument_gives_puts_a_guess_in_doubt(
    subject: Callable[..., Subject], origin: str, number: int, steps: int, expected: str
) -> None:
    class Repeated(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, number: int) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            return g.mean(0, keepdim=True).expand(steps, 4), None

    bound = subject(Repeated, torch.ones(3, 4), number)
    bound.sample = replace(bound.sample, origin=origin)
    assert GL201 is not None
    assert GL201.probe is not None
    (finding,) = as_loud_as_evidence(GL201.probe(bound)).findings
    assert finding.severity == expected


@pytest.mark.parametrize(
    ("origin", "by_it", "expected"),
    [("inferred", True, "warning"), ("inferred", False, "error"), ("given", True, "error")],
)
def test_what_a_guessed_function_returns_in_backward_is_in_doubt(
    subject: Callable[..., Subject], origin: str, by_it: bool, expected: str
) -> None:
    class Solved(Function):
        @staticmethod
        def forward(ctx: Any, a: Tensor, b: Tensor, solve: Callable[..., Tensor]) -> Tensor:
            ctx.save_for_backward(a, b)
            ctx.solve = solve
            return solve(a, b)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            a, b = ctx.saved_tensors
            wide = ctx.solve(b, g) if by_it else g
            return a * 0 + g, wide.mT, None

    bound = subject(Solved, torch.ones(4, 5), torch.ones(5), stand_in)
    bound.sample = replace(bound.sample, origin=origin)
    assert GL201 is not None
    assert GL201.probe is not None
    (finding,) = as_loud_as_evidence(GL201.probe(bound)).findings
    assert (finding.input, finding.severity) == ("b", expected)


@pytest.mark.parametrize(
    ("shape", "make", "code", "advice"),
    [
        ((2, 3), lambda g: g * 2, None, ""),
        ((2, 3), lambda g: g.mT, "GL201", "the last two axes are exchanged"),
        ((2, 3), lambda g: g.sum(0), "GL201", "expand it to [2, 3]"),
        ((2, 3), lambda g: g.sum(), "GL201", "expand it to [2, 3]"),
        ((3,), lambda g: g[:2], "GL201", "return a gradient of shape [3]"),
        ((3,), lambda g: g[None] * 2, "GL202", ".sum_to_size([3])"),
        ((3,), lambda g: g.expand(4, 3), "GL202", ".sum_to_size([3])"),
        ((3, 1), lambda g: g.expand(3, 4), "GL202", ".sum_to_size([3, 1])"),
        ((1,), lambda g: g.expand(5), "GL202", ".sum_to_size([1])"),
        ((), lambda g: g.expand(5), "GL202", ".sum_to_size([])"),
        ((), lambda g: g * 2, None, ""),
        ((0, 3), lambda g: g * 2, None, ""),
        ((3, 1), lambda g: g.reshape(3), "GL201", "expand it to [3, 1]"),
    ],
)
def test_shapes(
    probed: Callable[..., Outcome],
    shape: tuple[int, ...],
    make: Callable[[Tensor], Tensor],
    code: str | None,
    advice: str,
) -> None:
    found = []
    for rule in (GL201, GL202):
        outcome = probed(rule, returning(make), torch.randn(shape))
        found += outcome.findings
        assert outcome.verdict == ("fail" if rule is GL201 and code == "GL201" else "pass")
    assert [finding.code for finding in found] == ([code] if code else [])
    for finding in found:
        assert finding.input == "x"
        assert advice in finding.help
        assert finding.evidence["input_shape"] == list(shape)


def test_exchanged_gradients_are_suspected(probed: Callable[..., Outcome]) -> None:
    class Op(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
            ctx.save_for_backward(x, w)
            return x @ w

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            x, w = ctx.saved_tensors
            return x.mT @ g, g @ w.mT

    findings = probed(GL201, Op, torch.randn(2, 3), torch.randn(3, 5)).findings
    assert [finding.input for finding in findings] == ["x", "w"]
    assert "this is the shape of `w`" in findings[0].help
    assert "this is the shape of `x`" in findings[1].help


def test_frozen_inputs_may_get_any_shape(probed: Callable[..., Outcome]) -> None:
    class Op(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
            return x + w.sum()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            return g, g[:1]

    x = torch.randn(3, requires_grad=True)
    assert probed(GL201, Op, x, torch.randn(4)).verdict == "pass"


def test_engine_texts_serve_where_no_python_backward_is_seen(
    subject: Callable[..., Any],
) -> None:
    from gradlint.trace.op_io import OpRaised

    bound = subject(torch.sin, torch.randn(3))
    text = (
        "Function MyOpBackward returned an invalid gradient at index 0 - got [2] but expected "
        "shape compatible with [3]"
    )
    bound.run.error = OpRaised("backward", RuntimeError(text))
    assert GL201 is not None
    assert GL201.probe is not None
    (finding,) = GL201.probe(bound).findings
    assert finding.message == "backward of MyOp returned a gradient whose shape does not fit " + (
        "its input"
    )
    assert finding.evidence["original"] == text


@pytest.mark.parametrize(
    ("dtype", "make", "severity"),
    [
        (torch.float64, lambda g: g.float(), "warning"),
        (torch.float64, lambda g: g.bfloat16(), "warning"),
        (torch.float64, lambda g: g > 0, "warning"),
        (torch.float64, lambda g: g.long(), "warning"),
        (torch.float32, lambda g: g.half(), "warning"),
        (torch.float16, lambda g: g.bfloat16(), "warning"),
        (torch.float32, lambda g: g.double(), "info"),
        (torch.bfloat16, lambda g: g.float(), "info"),
        (torch.float64, lambda g: g * 1j, "error"),
        (torch.float64, lambda g: g, None),
        (torch.float16, lambda g: g * 2, None),
        (torch.bfloat16, lambda g: (g.float() * 2).to(g.dtype), None),
    ],
)
def test_dtypes(
    probed: Callable[..., Outcome],
    dtype: torch.dtype,
    make: Callable[[Tensor], Tensor],
    severity: str | None,
) -> None:
    outcome = probed(GL203, returning(make), torch.randn(3), dtype=dtype)
    assert [f.severity for f in outcome.findings] == ([severity] if severity else [])
    assert outcome.verdict == ("fail" if severity in ("error", "warning") else "pass")


def test_an_op_that_works_in_float32_throughout_is_a_note(probed: Callable[..., Outcome]) -> None:
    class Op(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.float() * 2

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g * 2

    outcome = probed(GL203, Op, torch.randn(3))
    assert [finding.severity for finding in outcome.findings] == ["info"]
    assert "forward returns float32 too" in outcome.findings[0].help


def test_real_gradient_of_complex_input_passes(probed: Callable[..., Outcome]) -> None:
    class Op(Function):
        @staticmethod
        def forward(ctx: Any, z: Tensor) -> Tensor:
            return z.real.clone()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g

    z = torch.randn(3, dtype=torch.complex128)
    assert probed(GL203, Op, z).verdict == "pass"


def test_gradient_on_another_device(probed: Callable[..., Outcome]) -> None:
    op = returning(lambda g: g.to("meta"))
    (finding,) = probed(GL204, op, torch.randn(3)).findings
    assert finding.message == "gradient for `x` is on meta, its input on cpu"
    assert finding.severity == "error"
    assert probed(GL204, returning(lambda g: g), torch.randn(3)).verdict == "pass"


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_scalar_gradient_is_moved_by_the_engine(probed: Callable[..., Outcome]) -> None:
    op = returning(lambda g: g.cuda())
    (finding,) = probed(GL204, op, torch.randn(())).findings
    assert finding.severity == "info"


def test_wrong_counts_are_left_to_their_rule(probed: Callable[..., Outcome]) -> None:
    op = returning(lambda g: (g.to("meta")[:2].float(), g))
    for rule in (GL201, GL202, GL203, GL204):
        outcome = probed(rule, op, torch.randn(3))
        assert outcome.findings == []
        assert outcome.verdict == "skipped"
        assert "GL101" in outcome.note


def test_inner_functions_are_seen(probed: Callable[..., Outcome]) -> None:
    inner = returning(lambda g: g.float())

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(3))

        def forward(self, x: Tensor) -> Tensor:
            return inner.apply(x * self.weight)

    (finding,) = probed(GL203, Layer(), torch.randn(3)).findings
    assert finding.input == "x of Op"
    assert finding.location is not None
