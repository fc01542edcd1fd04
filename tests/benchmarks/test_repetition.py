"""A small part of the benchmark: a few seeds, no failure, and a planted fault that is one."""

from __future__ import annotations

import pytest
import torch

from tests.benchmarks.repetition import DTYPES, checks, report, run, subject_of
from tests.benchmarks.support.repeated import REPEATED, Repeated

HARD = (
    "sigmoid, saturated",
    "largest, with ties",
    "random mask",
    "variance far from 0",
    "float32 inside",
)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", [c for c in REPEATED if c.name in HARD], ids=lambda c: c.name)
def test_right_operators_do_not_fail(case, dtype):
    for seed in (71, 72):
        for found in checks(case, dtype, seed):
            assert found.verdict in ("pass", "skipped"), found


def test_every_seed_has_inputs_of_its_own():
    for case in REPEATED:
        first, second = (subject_of(case, "float64", seed).problem.values() for seed in (1, 2))
        assert all(not torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_a_wrong_operator_fails():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2.2 * g * x

    case = Repeated("wrong", Wrong.apply, lambda draw: (draw(6, 5),))
    for dtype in DTYPES:
        assert "fail" in {found.verdict for found in checks(case, dtype, 3)}


def test_the_report_counts():
    found = run(("float32",), range(5, 7), 1, "clamp")
    assert {item.verdict for item in found} == {"pass"}
    assert "0.0% of 2" in report(found, ("float32",))
