"""How often the function is called, and what is held in memory."""

from __future__ import annotations

import pytest
import torch

import gradlint
from gradlint.dropin._exact import check_again, check_undefined, check_zero
from gradlint.dropin._function import Function
from gradlint.dropin._options import Options
from tests.dropin.conftest import leaf

#: Issue 3: a passing float64 check of an elementwise function.
FORWARD, BACKWARD = 40, 30


@pytest.mark.parametrize("count", [10, 200_000])
def test_calls_of_a_passing_check(count):
    calls = {"forward": 0, "backward": 0}

    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            calls["forward"] += 1
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, g):
            calls["backward"] += 1
            return ctx.saved_tensors[0].exp() * g

    assert gradlint.gradcheck(Op.apply, (leaf(count),))
    assert calls["forward"] <= FORWARD
    assert calls["backward"] <= BACKWARD


def test_the_checks_beside_the_values_share_one_forward():
    options = Options(
        "gradcheck", 1e-6, 1e-5, 1e-3, 0.0, True, False, False, False, False, True, False, None, 1
    )
    function = Function(torch.sin, (leaf(5),), masked=False)
    function.start()
    found = [*check_again(function, options), *check_zero(function, options)]
    found += check_undefined(function)
    assert found == []
    assert function.forward_calls == 1
    assert function.backward_calls == 4
