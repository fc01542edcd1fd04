"""A part of the benchmark on PyTorch's operator database, and what it leaves out."""

from __future__ import annotations

import pytest
import torch

from gradlint.numerics.verdict import DIFFERS
from gradlint.trace.op_io import OpRaised
from tests.benchmarks.operator_database import run
from tests.benchmarks.support.faults import FACTOR, FAULTS, FLIPPED, ZEROED, faulty, sizeable_place
from tests.benchmarks.support.known import KNOWN, known
from tests.benchmarks.support.operators import cases, judged
from tests.benchmarks.support.tally import CAUGHT, DECLARED, SILENT, rows

#: Smooth, kinked, reducing, normalising, indexing, of several inputs and outputs, in place of all.
SOME = {
    "add",
    "atan2",
    "cumprod",
    "gather",
    "linalg_solve",
    "nn_functional_conv1d",
    "nn_functional_embedding",
    "nn_functional_layer_norm",
    "nn_functional_relu",
    "softmax",
    "sort",
    "tanh",
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_some_operators(dtype):
    tally = run(dtype, names=SOME, rival=False)
    assert tally.operators == SOME
    assert tally.samples == 34
    assert tally.verdicts[DIFFERS] == 0
    outcomes = {
        outcome: sum(tally.faults[f, outcome] for f in FAULTS)
        for outcome in (CAUGHT, DECLARED, SILENT)
    }
    assert outcomes[SILENT] == 0
    assert outcomes[DECLARED] <= 0.01 * outcomes[CAUGHT]
    assert outcomes[CAUGHT] > 100
    found = rows({dtype: tally})
    assert found[0] == ("", dtype, "goal")
    table = {what: figure for what, figure, _ in found}
    assert table["samples"] == "34"
    assert table["false alarms"] == "0"


@pytest.mark.parametrize("item", KNOWN, ids=lambda item: item.operator)
def test_what_is_left_out_is_no_derivative(item):
    for case in cases(torch.float64, names={item.operator}):
        if case.number not in item.float64:
            continue
        try:
            decision = judged(case.problem(), seed=0)
        except OpRaised:
            continue
        assert decision is not None
        assert DIFFERS in decision.verdicts, case


def test_known_is_by_sample_and_dtype():
    assert "repeat" in str(known("nn_functional_max_unpool2d", 0, "float32"))
    assert known("nn_functional_max_unpool2d", 0, "float64") is None
    assert known("nn_functional_max_unpool", 1, "float64") is None


def test_faults():
    gradient = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    assert faulty(gradient, FACTOR, 0).tolist() == (1.01 * gradient).tolist()
    assert faulty(gradient.mT, ZEROED, 1).tolist() == [[1.0, 0.0], [-2.0, 4.0]]
    assert faulty(gradient, FLIPPED, 3).tolist() == [[1.0, -2.0], [3.0, -4.0]]
    assert gradient.tolist() == [[1.0, -2.0], [3.0, 4.0]]


def test_a_fault_has_a_sizeable_place():
    generator = torch.Generator().manual_seed(0)
    gradient = torch.tensor([0.0, 0.05, -1.0, 0.2])
    found = {sizeable_place(gradient, generator) for _ in range(50)}
    assert found == {2, 3}
    assert sizeable_place(torch.zeros(3), generator) is None
    assert sizeable_place(torch.tensor([1.0, float("nan")]), generator) is None
    assert sizeable_place(torch.empty(0), generator) is None


def test_a_planted_fault_is_in_the_gradient_and_not_in_forward():
    case = next(cases(torch.float64, names={"tanh"}))
    (x,) = case.differentiable()
    planted = case.faulty(x, FLIPPED, 3)
    ones = {"output": torch.ones_like(x)}
    right, wrong = case.problem().pull(ones)[0], planted.problem().pull(ones)[0]
    assert right is not None
    assert wrong is not None
    assert (right != wrong).flatten().nonzero().tolist() == [[3]]
    here, there = case.problem().forward()[0].value, planted.problem().forward()[0].value
    assert torch.equal(here, there)
