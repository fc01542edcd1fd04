"""A part of the benchmark of fixes: bugs of three families are mended, and what that changes."""

from __future__ import annotations

import pytest

from tests.benchmarks.fixes import summary, told
from tests.benchmarks.support.planted_bugs import all_bugs

PLACES = {bug.name: place for place, bug in enumerate(all_bugs())}

#: Name of a bug → the lines that its fix adds.
ADDED = {
    "flags swapped": [
        "        grad_x = grad_output * weight if ctx.needs_input_grad[0] else None",
        "        grad_weight = grad_output * x if ctx.needs_input_grad[1] else None",
    ],
    "input on ctx": [
        "        ctx.save_for_backward(x)",
        "        (x,) = ctx.saved_tensors",
        "        return grad_output * x.cos()",
    ],
    "broadcast left to the engine": ["        return grad @ weight, grad.T @ x, grad.sum(0)"],
}


@pytest.mark.parametrize("name", ADDED)
def test_a_planted_bug_is_mended(name: str) -> None:
    place = PLACES[name]
    found = told(place, all_bugs()[place])
    assert found.result.fix is not None, found.result.why
    lines = found.result.fix.diff.splitlines()
    assert [line[1:] for line in lines if line[:1] == "+" and line[:3] != "+++"] == ADDED[name]
    assert 0.5 < found.cost < 5
    assert summary([found])[-1][:4] == ("all", "1", "1", "100%")
