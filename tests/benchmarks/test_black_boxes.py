"""A small part of the benchmark: right operators are silent, and reasons are for what is found."""

from __future__ import annotations

import pytest
import torch

from tests.benchmarks.black_boxes import FAULTS, examined, reason
from tests.benchmarks.support.operators import cases

RIGHT = ("softmax", "nn_functional_linear", "cumsum", "index_add", "nn_functional_relu", "std")


@pytest.mark.parametrize("name", RIGHT)
def test_right_operators_are_silent(name):
    case = next(c for c in cases(torch.float64, name, None) if c.name == name and not c.number)
    told = examined(case)
    assert told.died == ""
    assert [one for one in told.findings if one[1] != "info"] == []
    assert told.verdicts["pass"] > 20


@pytest.mark.parametrize("fault", [("select_scatter", "GL901"), ("native_group_norm", "GL405")])
def test_what_is_wrong_in_pytorch_is_found_and_explained(fault):
    name, code = fault
    case = next(c for c in cases(torch.float64, name, None) if c.name == name and not c.number)
    errors = {one[0] for one in examined(case).findings if one[1] == "error"}
    assert errors == {code}
    assert FAULTS[fault] in reason(case, code)
    assert reason(case, "GL602") == ""
