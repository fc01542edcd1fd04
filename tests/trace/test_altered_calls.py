"""Names of the operands of a call, as its source has them."""

import linecache

import pytest
import torch

from gradlint.trace.altered_calls import Recorded, Recording


def recorded(expression: str, **names: object) -> Recorded:
    """The last call that ``expression`` makes."""
    name = f"<{expression}>"
    linecache.cache[name] = (len(expression), None, [expression + "\n"], name)
    watched = Recording()
    with watched:
        eval(compile(expression, name, "eval"), {"torch": torch, **names})
    return watched.calls[-1]


@pytest.mark.parametrize(
    ("expression", "position", "name"),
    [
        ("torch.nn.functional.softplus(x)", 0, "x"),
        ("nn.functional.softplus(x)", 0, "x"),
        ("F.relu(x)", 0, "x"),
        ("F.softmax(x, -1)", 0, "x"),
        ("torch.exp(x).sum(0)", 0, "torch.exp(x)"),
        ("torch.where(x > 0, 2 * x, y)", 1, "2 * x"),
        ("torch.where(x > 0, 2 * x, y)", 2, "y"),
        ("torch.cat([x, y], 0)", 1, "y"),
        ("x[index]", 0, "x"),
        ("x[..., None]", 0, "x"),
        ("x * number", 0, ""),
        ("number * x", 0, ""),
        ("2 * x", 0, "x"),
        ("number / x", 0, "x"),
        ("number - x", 0, "x"),
        ("x - number", 0, "x"),
        ("index * x", 1, "x"),
        ("-x", 0, "x"),
        ("torch.cat(both, 0)", 1, ""),
        ("torch.cat([*both, x], 0)", 2, ""),
        ("torch.mul(input=x, other=y)", 0, ""),
    ],
)
def test_an_operand_is_named_as_it_is_written(expression: str, position: int, name: str) -> None:
    x, y = torch.tensor([0.5, 1.5]), torch.tensor([2.0, 3.0])
    found = recorded(
        expression,
        x=x,
        y=y,
        nn=torch.nn,
        F=torch.nn.functional,
        index=torch.tensor([1, 0]),
        number=3.0,
        both=(x, y),
    )
    assert position in found.operands
    assert found.operand(position) == name
