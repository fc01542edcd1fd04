"""In fast mode the drop-ins take at most twice the calls of torch's fast mode."""

from __future__ import annotations

import warnings

import pytest

from tests.benchmarks.dropin_cost import GOAL, Ratio, run, shares

#: Smooth, noisy, stepped, stochastic, with one to four inputs and one to three outputs.
NAMES = {
    "gradcheck": {"erfc", "nn_functional_normalize", "round_decimals_3", "addcmul", "add"},
    "gradgradcheck": {"tanh", "nn_functional_linear", "matmul"},
}


@pytest.mark.parametrize("name", NAMES)
def test_calls_in_fast_mode(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(run(name, names=NAMES[name]))
    assert {one.name.partition("[")[0] for one in found} == NAMES[name]
    assert all(one.passed for one in found)
    assert max(one.calls for one in found) <= GOAL


def test_the_summary() -> None:
    ratios = [Ratio(str(k), True, 0.5 * k, 1.0).calls for k in range(1, 8)]
    assert shares(ratios) == ["2.00", "3.00", "3.50", "3 of 7"]
