"""Predicted costs hold, and a budget lowers the pairs, never the honesty."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
import torch

from gradlint.api import _check_object
from gradlint.experiments.call_budget import SECOND_ORDER_KINDS, Plan
from gradlint.experiments.call_cost import Shape, first_order_calls, second_order_calls
from gradlint.model.report import Check, Report, TargetReport
from gradlint.model.resolve import resolve_settings
from gradlint.numerics.directions import KINDS
from gradlint.report.render import render
from gradlint.rules.catalogue import rule_names

F = torch.nn.functional


class Exp(torch.autograd.Function):
    factor = 1.0

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return Exp.factor * grad_output * ctx.saved_tensors[0]


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


# Right ops: name → (op, arguments).
OPS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "exp": (Exp, (randn(3, 4),)),
    "mul": (torch.mul, (randn(3, 4), randn(3, 4, seed=1))),
    "linear": (F.linear, (randn(3, 4), randn(5, 4, seed=1), randn(5, seed=2))),
    "float32 inside": (lambda x: x.float().exp().double(), (randn(3, 4),)),
    "relu": (torch.relu, (randn(3, 4),)),
    "relu at 0": (torch.relu, (torch.zeros(5, dtype=torch.float64).requires_grad_(),)),
    "max with ties": (lambda x: x.round().amax(-1), (randn(5, 4),)),
    "two outputs": (lambda x: (x.exp(), x.sin()), (randn(3, 4),)),
    "dropout": (torch.nn.Dropout(0.5), (randn(3, 4),)),
    "sin 1e6x": (lambda x: (1e6 * x).sin(), (randn(3, 4),)),
    "large": (torch.tanh, (randn(200, 200),)),
}


def check(op: Any, args: tuple[Any, ...], **flags: Any) -> TargetReport:
    return _check_object(
        op, args, resolve_settings({"seed": 1, **flags}, rules=rule_names())
    ).targets[0]


def by_code(target: TargetReport) -> dict[str, Check]:
    return {item.code: item for item in target.checks}


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("name", OPS)
def test_checks_that_pass_take_no_more_calls_than_predicted(name, dtype):
    op, args = OPS[name]
    target = check(op, args, dtypes=[dtype])
    predicted = {item.family: item for item in target.predicted}
    assert set(predicted) == {"others", "GL4", "GL5"}
    found = by_code(target)
    for family, code in (("GL4", "GL401"), ("GL5", "GL501")):
        done, most = found[code], predicted[family]
        if done.verdict in ("pass", "inconclusive"):
            assert done.forward_calls <= most.forward_calls, (name, dtype, code)
            assert done.backward_calls <= most.backward_calls, (name, dtype, code)
    others = [item for item in target.checks if item.code not in ("GL401", "GL501")]
    assert sum(c.forward_calls for c in others) <= predicted["others"].forward_calls
    assert sum(c.backward_calls for c in others) <= predicted["others"].backward_calls


@pytest.mark.parametrize("name", ["exp", "mul", "linear", "relu", "two outputs", "dropout"])
def test_usual_calls_are_those_of_smooth_ops(name):
    op, args = OPS[name]
    target = check(op, args)
    predicted = {item.family: item for item in target.predicted}
    found = by_code(target)
    for family, code in (("GL4", "GL401"), ("GL5", "GL501")):
        usual = predicted[family].usual_forward_calls, predicted[family].usual_backward_calls
        done = found[code].forward_calls, found[code].backward_calls
        assert 0.4 * usual[0] <= done[0] <= 2.0 * usual[0], (code, done, usual)
        assert done[1] <= 2.0 * usual[1], (code, done, usual)
        assert predicted[family].duration_s > 0.0
        assert predicted[family].memory_bytes > 0


def test_the_prediction_grows_with_pairs_inputs_and_bits():
    shape = Shape(1, 1, 53, False, 100, 20)
    for calls in (first_order_calls, second_order_calls):
        totals = [calls(k, shape, most=False).total for k in range(5)]
        assert totals == sorted(set(totals))
        assert calls(4, shape, most=False).total < calls(4, shape, most=True).total
        two = Shape(2, 1, 53, False, 100, 20)
        assert calls(4, shape, most=False).total < calls(4, two, most=False).total


@pytest.mark.parametrize("name", ["exp", "mul", "linear", "relu", "two outputs", "dropout"])
@pytest.mark.parametrize("budget", [1, 20, 40, 60, 90, 130, 200, 300, 500])
def test_a_budget_lowers_the_pairs_and_is_kept(name, budget):
    op, args = OPS[name]
    target = check(op, args, max_calls=budget)
    found = by_code(target)
    first, second = found["GL401"], found["GL501"]
    total = sum(item.forward_calls + item.backward_calls for item in target.checks)
    if first.pairs:
        assert first.verdict == "pass"
        assert total <= budget
        assert first.resolution is not None
    else:
        assert first.verdict == "inconclusive"
        assert target.verdict == "inconclusive"
        assert f"--max-calls {budget} is too small" in first.note
        assert first.help == "raise --max-calls, or leave it out"
    if first.pairs is not None and first.pairs < len(KINDS):
        assert second.verdict == "skipped"
        assert f"--max-calls {budget}" in first.note
    if second.verdict == "skipped":
        assert second.note == f"left out: beyond --max-calls {budget}"
    elif second.pairs != len(SECOND_ORDER_KINDS):
        assert f"{second.pairs} of 3 pairs: --max-calls {budget}" in second.note


def test_a_large_budget_changes_nothing():
    free, bound = (check(*OPS["mul"], max_calls=budget) for budget in (None, 10**6))
    for a, b in zip(free.checks, bound.checks, strict=True):
        assert (a.code, a.verdict, a.resolution, a.note) == (
            b.code,
            b.verdict,
            b.resolution,
            b.note,
        )
    assert bound.gradcheck is not None
    assert bound.gradcheck.verdict == "pass"


def test_torchs_own_verdict_is_left_out_beyond_the_budget():
    target = check(*OPS["exp"], max_calls=60)
    for verdict in (target.gradcheck, target.gradgradcheck):
        assert verdict is not None
        assert (verdict.verdict, verdict.message) == (
            *("skipped", "left out: beyond --max-calls 60"),
        )


@pytest.mark.parametrize("budget", [40, 60, 200])
def test_a_wrong_gradient_is_found_within_a_budget_and_followed_up(monkeypatch, budget):
    monkeypatch.setattr(Exp, "factor", 1.5)
    target = check(*OPS["exp"], max_calls=budget)
    (finding,) = [item for item in target.findings if item.code == "GL401"]
    assert finding.cause == "scaled"
    assert target.verdict == "fail"


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("budget", [1, 30, 45, 70, 150])
def test_noise_within_a_budget_is_never_an_alarm(dtype, budget):
    for name in ("float32 inside", "relu at 0", "max with ties"):
        target = check(*OPS[name], max_calls=budget, dtypes=[dtype], order=1)
        assert by_code(target)["GL401"].verdict in ("pass", "inconclusive"), name


def test_slow_ops_are_judged_by_fewer_pairs():
    def slow(x):
        time.sleep(0.05)
        return x.exp()

    target = check(slow, (randn(3),), timeout=3, order=1)
    found = by_code(target)["GL401"]
    assert found.pairs is not None
    assert 0 < found.pairs < len(KINDS)
    assert re.search(r"pairs: a call takes 0\.\d+ s \(--timeout 3\)", found.note)
    assert found.verdict == "pass"


@pytest.mark.parametrize("stalled", [1, 2])
def test_a_call_that_stalls_costs_no_pairs(stalled):
    left = [0.3] * stalled

    def stalls(x):
        time.sleep(left.pop() if left else 0.0)
        return x.exp()

    done = by_code(check(stalls, (randn(3),), timeout=20, order=1, select=["GL401"]))["GL401"]
    assert (done.pairs, done.note) == (len(KINDS), "")


class OneZero(Exp):
    """One element of the gradient is zero."""

    @staticmethod
    def backward(ctx, grad_output):
        gradient = grad_output * ctx.saved_tensors[0]
        gradient.view(-1)[5] = 0.0
        return gradient


class SlowAndWrong(OneZero):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        SlowAndWrong.calls += 1
        time.sleep(0.03)
        return Exp.forward(ctx, x)


@pytest.mark.parametrize("budget", [40, 45, 60, 200])
def test_one_zero_element_is_seen_by_however_few_pairs(budget):
    target = check(OneZero, (randn(40, 50),), max_calls=budget)
    assert by_code(target)["GL401"].verdict == "fail"
    assert target.findings[0].index == [0, 5]


def test_a_slow_op_with_a_wrong_gradient_is_not_measured_without_end():
    target = check(SlowAndWrong, (randn(40, 50),), timeout=3.0, order=1)
    assert by_code(target)["GL401"].verdict == "fail"
    # 3 s are a hundred calls; the search alone would take more without a bound.
    assert by_code(target)["GL401"].forward_calls < 100


def test_beyond_the_time_nothing_is_measured(monkeypatch):
    from gradlint.experiments import call_budget as _allowance

    monkeypatch.setattr(_allowance, "DEADLINE", 0.0)
    target = check(*OPS["exp"])
    done = by_code(target)["GL401"]
    assert done.verdict == "inconclusive"
    assert "x: measured no further: --timeout 60" in done.note
    assert by_code(target)["GL501"].verdict in ("inconclusive", "skipped")
    assert done.help == "raise --timeout, or give the op smaller inputs (--inputs)"


def test_plans_say_what_they_lower():
    plan = Plan(first=KINDS[:2], second=(), reason="--max-calls 9")
    assert plan.note("GL401") == "2 of 4 pairs: --max-calls 9"
    assert plan.note("GL501") == "not one pair could be measured: --max-calls 9 is too small"
    assert plan.too_small == "left out: beyond --max-calls 9"
    assert plan.note("GL101") == ""
    assert (Plan().note("GL401"), Plan().too_small) == ("", "")


def test_power_is_told_by_input_and_json_stays_strict():
    target = check(*OPS["linear"], dtypes=["float64", "float32"])
    named = {
        (item.sample, power.name): power
        for item in target.checks
        if item.code == "GL401"
        for power in item.inputs
    }
    assert {name for _, name in named} == {"input", "weight", "bias"}
    assert all(0.0 < power.resolution < 3e-2 for power in named.values())
    unsure = check(*OPS["exp"], max_calls=1)
    (power,) = by_code(unsure)["GL401"].inputs
    assert power.resolution == float("inf")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    for one in (target, unsure):
        found = json.loads(render(Report([one]), "json"), parse_constant=refuse)
        assert found["targets"][0]["predicted"][0]["family"] == "others"
    (entry,) = [c for c in found["targets"][0]["checks"] if c["code"] == "GL401"]
    assert entry["inputs"][0]["resolution"] == "inf"
