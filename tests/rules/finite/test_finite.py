"""GL3: planted faults and near misses for finiteness."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code

GL301, GL302 = by_code("GL301"), by_code("GL302")

NAN, INF = math.nan, math.inf


# -- GL301: NaN or Inf in forward ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "x", "index", "message"),
    [
        (torch.log, [1.0, 0.0, 2.0], [1], "1 of 3 elements of `output` is infinite"),
        (torch.sqrt, [1.0, 4.0, -2.0], [2], "1 of 3 elements of `output` is NaN"),
        (torch.exp, [1.0, 1000.0, 2.0], [1], "1 of 3 elements of `output` is infinite"),
        (lambda x: x / x, [0.0, 0.0, 2.0], [0], "2 of 3 elements of `output` are NaN"),
        (lambda x: x.relu().log(), [-1.0, 1.0], [0], "1 of 2 elements of `output` is infinite"),
        (lambda x: (x / x).sum(), [0.0, 1.0], [], "1 of 1 elements of `output` is NaN"),
    ],
)
def test_not_finite_at_finite_inputs(
    probed: Callable[..., Outcome], op: Any, x: list[float], index: list[int], message: str
) -> None:
    outcome = probed(GL301, op, torch.tensor(x))
    (finding,) = outcome.findings
    assert outcome.verdict == "fail"
    assert finding.severity == "warning"
    assert finding.index == index
    assert finding.output == "output"
    assert finding.message.startswith(message)


@pytest.mark.parametrize(
    ("op", "owned"),
    [
        (lambda x: torch.matrix_exp(x.expand(3, 3)).sum(0), True),
        (lambda x: x.mul(100).exp(), False),  # beyond the dtype in float64, too
        (lambda x: (x - x) / (x - x), False),  # NaN in every dtype
    ],
)
def test_what_only_an_operator_of_torch_makes_infinite_is_its_own_matter(
    probed: Callable[..., Outcome], op: Any, owned: bool
) -> None:
    outcome = probed(GL301, op, torch.tensor([1.0, 2.0, 3.0]), dtype=torch.bfloat16)
    (finding,) = outcome.findings
    assert finding.grounds.torch_owned is owned
    told = finding.evidence.get("first returned by", "")
    assert told == ("PyTorch's matrix_exp, which is finite in float64" if owned else "")


MASK = torch.tensor([True, False, True])


@pytest.mark.parametrize(
    "op",
    [
        lambda x: x.masked_fill(MASK, -INF),
        lambda x: x.masked_fill(MASK, INF) * 2,
        lambda x: x + torch.tensor([-INF, 0.0, 0.0]),
        lambda x: torch.where(MASK, torch.full_like(x, -INF), x.exp()),
        lambda x: torch.stack([x, torch.full_like(x, INF)]),
    ],
)
def test_deliberate_infinities_pass(probed: Callable[..., Outcome], op: Any) -> None:
    outcome = probed(GL301, op, torch.tensor([0.3, -1.0, 2.0]))
    assert outcome.verdict == "pass"
    assert "considered deliberate" in outcome.note


def test_not_finite_inputs_are_skipped(probed: Callable[..., Outcome]) -> None:
    for bad in (NAN, INF):
        assert probed(GL301, torch.sin, torch.tensor([1.0, bad])).verdict == "skipped"
        assert probed(GL302, torch.sin, torch.tensor([1.0, bad])).verdict == "skipped"


def test_integer_outputs_are_left_alone(probed: Callable[..., Outcome]) -> None:
    assert probed(GL301, torch.argsort, torch.tensor([2.0, 1.0])).verdict == "pass"


def test_every_output_is_looked_at(probed: Callable[..., Outcome]) -> None:
    outcome = probed(GL301, lambda x: {"a": x, "b": [x.log()]}, torch.tensor([1.0, 0.0]))
    assert [finding.output for finding in outcome.findings] == ["output['b'][0]"]


# -- GL302: NaN or Inf in backward ---------------------------------------------------------------


def formula(forward: Callable[[Tensor], Tensor], slope: Callable[[Tensor], Tensor]) -> Any:
    """y = forward(x) element by element, with dy/dx = slope(x)."""

    class Op(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return g * slope(x)

    return Op


def sinc(x: Tensor) -> Tensor:
    return torch.where(x == 0, torch.ones_like(x), torch.sin(x) / x)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("forward", "slope", "x", "index", "measured"),
    [
        (sinc, lambda x: (x * x.cos() - x.sin()) / x**2, [1.0, 0.0], [1], 0.0),
        (torch.abs, lambda x: x / x.abs(), [-1.0, 0.5, 0.0], [2], None),
        (torch.square, lambda x: 2 * x * x / x, [0.0, 1.0], [0], 0.0),
        (torch.sigmoid, lambda x: x.exp() / (1 + x.exp()) ** 2, [800.0, 1.0], [0], 0.0),
        (torch.relu, lambda x: torch.log(x).exp() / x, [-1.0, 2.0], [0], 0.0),
        (lambda x: 3 * x, lambda x: 3 / (x - x), [1.0, 2.0], [0], None),
    ],
)
def test_not_finite_where_the_derivative_is(
    probed: Callable[..., Outcome],
    forward: Any,
    slope: Any,
    x: list[float],
    index: list[int],
    measured: float | None,
    dtype: torch.dtype,
) -> None:
    outcome = probed(GL302, formula(forward, slope), torch.tensor(x), dtype=dtype)
    (finding,) = outcome.findings
    assert outcome.verdict == "fail"
    assert finding.severity == "error"
    assert finding.input == "x"
    assert finding.index == index
    (element,) = finding.evidence["elements"]
    assert not math.isfinite(element["returned"])
    assert math.isfinite(element["measured"])
    if measured is not None:
        assert element["measured"] == pytest.approx(measured, abs=1e-2)


@pytest.mark.parametrize(
    ("op", "x"),
    [
        (torch.sqrt, [0.0, 1.0]),
        (lambda x: x.abs().sqrt(), [0.0, 1.0]),
        (lambda x: x**0.9, [0.0, 1.0]),
        (lambda x: torch.xlogy(x, x), [0.0, 0.5]),
        (lambda x: torch.special.entr(x), [0.0, 0.5]),
        (torch.acos, [1.0, 0.5]),
        (torch.acosh, [1.0, 1.5]),
        (lambda x: x.sign() * x.abs() ** (1 / 3), [0.0, 2.0]),
        (torch.sin, [0.0, 2.0]),
    ],
)
def test_infinite_derivatives_are_no_finding(
    probed: Callable[..., Outcome], op: Any, x: list[float]
) -> None:
    outcome = probed(GL302, op, torch.tensor(x))
    assert [finding.message for finding in outcome.findings] == []
    assert outcome.verdict == "pass"


def test_the_where_trap_is_found(probed: Callable[..., Outcome]) -> None:
    def op(x: Tensor) -> Tensor:
        return torch.where(x > 0, x.sqrt(), torch.zeros_like(x))

    (finding,) = probed(GL302, op, torch.tensor([4.0, -1.0, 1.0])).findings
    assert finding.index == [1]


def test_masked_infinities_stay_silent(probed: Callable[..., Outcome]) -> None:
    def op(x: Tensor) -> Tensor:
        return x.masked_fill(MASK, -INF)

    assert probed(GL302, op, torch.tensor([0.3, -1.0, 2.0])).verdict == "pass"


def test_masked_infinities_do_not_hide_a_fault(probed: Callable[..., Outcome]) -> None:
    op = formula(
        lambda x: (x**2).masked_fill(MASK, -INF),
        lambda x: torch.where(MASK, torch.full_like(x, NAN), 2 * x),
    )
    (finding,) = probed(GL302, op, torch.tensor([0.3, -1.0, 2.0])).findings
    assert finding.index == [0]
    assert finding.evidence["elements"][0]["measured"] == 0.0


def test_forward_that_is_not_finite_is_left_to_its_rule(probed: Callable[..., Outcome]) -> None:
    outcome = probed(GL302, torch.log, torch.tensor([0.0, 1.0]))
    assert outcome.verdict == "skipped"
    assert "GL301" in outcome.note


def test_count_and_first_element_are_told(probed: Callable[..., Outcome]) -> None:
    op = formula(torch.square, lambda x: 2 * x * x / x)
    x = torch.ones(4, 5)
    x[1, 2] = x[3, 0] = 0.0
    (finding,) = probed(GL302, op, x).findings
    assert finding.index == [1, 2]
    assert finding.message == (
        "gradient for `x` is NaN at [1, 2] (2 of 20 elements), where the function has a finite "
        "derivative"
    )


def test_honest_overflow_in_half_precision_is_no_finding(probed: Callable[..., Outcome]) -> None:
    op = formula(lambda x: x * 1e5 - 1e5, lambda x: torch.full_like(x, 1e5))
    outcome = probed(GL302, op, torch.tensor([1.0, 1.0]), dtype=torch.float16)
    assert outcome.findings == []


def test_dependence_through_other_elements_counts(probed: Callable[..., Outcome]) -> None:
    class Op(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return torch.linalg.vector_norm(x, dim=-1)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return (g / torch.linalg.vector_norm(x, dim=-1))[:, None] * x

    (finding,) = probed(GL302, Op, torch.tensor([[1.0, 2.0], [0.0, 0.0]])).findings
    assert finding.index == [1, 0]
    assert abs(finding.evidence["elements"][0]["measured"]) > 0
