"""Modules that keep neither of the sizes that they were made with, and refuse all others."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Function

import gradlint
from gradlint.inputs._infer import infer
from gradlint.inputs.not_found import NoInputsFound
from gradlint.inputs.samples import samples_for
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object


class Gated(Function):
    """The state and the input side by side, times one weight."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, h: Tensor, c: Tensor, weight: Tensor) -> Tensor:
        both = torch.cat([h, x], dim=1)
        gate = torch.sigmoid(both @ weight)
        ctx.save_for_backward(both, c, weight, gate)
        return gate * c

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, ...]:
        both, c, weight, gate = ctx.saved_tensors
        inner = g * c * gate * (1 - gate)
        to_both = inner @ weight.T
        units = c.shape[1]
        return to_both[:, units:], to_both[:, :units], g * gate, both.T @ inner


class GatedWrongly(Gated):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, ...]:
        to_x, to_h, to_c, to_weight = Gated.backward(ctx, g)
        return to_x, 2 * to_h, to_c, to_weight


class Cell(nn.Module):
    def __init__(self, input_size: int = 3, hidden_size: int = 4) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(input_size + hidden_size, hidden_size))

    def forward(self, input: Tensor, hx: Tensor, cx: Tensor) -> Tensor:
        return Gated.apply(input, hx, cx, self.weight)


class WrongCell(Cell):
    def forward(self, input: Tensor, hx: Tensor, cx: Tensor) -> Tensor:
        return GatedWrongly.apply(input, hx, cx, self.weight)


class CellOfChosen(nn.Module):
    """Its sizes have no defaults, and the state comes as a pair."""

    def __init__(self, n_in: int, n_hid: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_in + n_hid, n_hid))

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> Tensor:
        h, c = state
        return Gated.apply(x, h, c, self.weight)


class Beside(nn.Module):
    """Nothing tells which number is the size of which tensor."""

    def __init__(self, left: int = 3, right: int = 5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(left + right, 2))
        self.scale = nn.Parameter(torch.randn(right))

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        return torch.cat([u, v * self.scale], dim=1) @ self.weight


class Attending(nn.Module):
    """Takes any number of rows in either tensor: the numbers of the constructor are no sizes."""

    def __init__(self, heads: int = 2, hidden_size: int = 4) -> None:
        super().__init__()
        self.heads, self.scale = heads, nn.Parameter(torch.ones(hidden_size // 4))

    def forward(self, x: Tensor, state: Tensor) -> Tensor:
        return (x @ state.mT) * self.scale / self.heads


def shapes(module: nn.Module | type[nn.Module]) -> list[tuple[int, ...]]:
    args = infer(from_object(module), seed=0)[0].args
    found = []
    for value in args:
        parts = value if isinstance(value, (tuple, list)) else [value]
        found += [tuple(part.shape) for part in parts]
    return found


@pytest.mark.parametrize(("width", "units"), [(3, 4), (6, 2)])
def test_a_cell_gets_what_it_was_made_for(width: int, units: int) -> None:
    cell = Cell(width, units)
    cell.input_size, cell.hidden_size = width, units
    rows = shapes(cell)[0][0]
    assert shapes(cell) == [(rows, width), (rows, units), (rows, units)]


def test_defaults_and_chosen_numbers() -> None:
    rows = shapes(Cell)[0][0]
    assert shapes(Cell) == [(rows, 3), (rows, 4), (rows, 4)]
    op = from_object(CellOfChosen)
    x, (h, c) = infer(op, seed=0)[0].args
    assert x.shape[1] == op.constructor["n_in"]
    assert h.shape == c.shape
    assert h.shape[1] == op.constructor["n_hid"]


def test_numbers_that_no_name_tells_apart() -> None:
    (rows, left), second = shapes(Beside)
    assert (left, second) == (3, (rows, 5))


def test_free_axes_stay_free() -> None:
    x, state = infer(from_object(Attending), seed=0)[0].args
    assert x.shape[-2] != state.shape[-2]


def test_gradients_of_cells_are_judged() -> None:
    for module, expected in ((Cell, set()), (WrongCell, {"hx"})):
        (report,) = gradlint.check(module, seed=0, order=1, select=["GL0", "GL4"]).targets
        loud = [f for f in report.findings if f.severity in ("error", "warning")]
        assert {(f.code, f.input) for f in loud} == {("GL401", name) for name in expected}


class Halved(Function):
    """Two gates from one product, that of a state beside them."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        i, o = (torch.sigmoid(part) for part in gates.chunk(2, 1))
        ctx.save_for_backward(i, o, c)
        return o * i * c, i * c

    @staticmethod
    def backward(ctx: Any, to_h: Tensor, to_c: Tensor) -> tuple[Tensor, Tensor]:
        i, o, c = ctx.saved_tensors
        both = to_h * o + to_c
        to_i, to_o = both * c * i * (1 - i), to_h * i * c * o * (1 - o)
        return torch.cat([to_i, to_o], 1), both * i


class HalvedWrongly(Halved):
    """Forgets one of the two ways from the state to the outputs."""

    @staticmethod
    def backward(ctx: Any, to_h: Tensor, to_c: Tensor) -> tuple[Tensor, Tensor]:
        return Halved.backward(ctx, to_h, to_c)[0], to_c * ctx.saved_tensors[0]


class CellOfPairs(nn.Module):
    """It has twice as many gates as units, and its state is a pair that nothing else tells of."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.gates = nn.Linear(input_size + hidden_size, 2 * hidden_size)

    def forward(self, x: Tensor, state: Any) -> tuple[Tensor, Tensor]:
        h, c = state
        return Halved.apply(self.gates(torch.cat([x, h], 1)), c)


class WrongCellOfPairs(CellOfPairs):
    def forward(self, x: Tensor, state: Any) -> tuple[Tensor, Tensor]:
        h, c = state
        return HalvedWrongly.apply(self.gates(torch.cat([x, h], 1)), c)


def test_a_state_that_is_unpacked_is_a_pair() -> None:
    op = from_object(CellOfPairs)
    x, state = infer(op, seed=0)[0].args
    assert x.shape[1] == op.constructor["input_size"]
    assert [tuple(part.shape) for part in state] == [(len(x), op.constructor["hidden_size"])] * 2


def test_gradients_of_a_pair_are_judged() -> None:
    for module, expected in ((CellOfPairs, set()), (WrongCellOfPairs, {"state[1]"})):
        (report,) = gradlint.check(module, seed=0, order=1, select=["GL0", "GL4"]).targets
        loud = [f for f in report.findings if f.severity in ("error", "warning")]
        assert {(f.code, f.input) for f in loud} == {("GL401", name) for name in expected}


class Residual(nn.Module):
    """A sum of what has the inner and the outer number of channels."""

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inner, outer, 1)

    def forward(self, x: Tensor) -> Tensor:
        return Twice.apply(self.conv(x) + x)


class Twice(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return 2 * g


class Thrice(Twice):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return 3 * g


class ResidualWrongly(Residual):
    def forward(self, x: Tensor) -> Tensor:
        return Thrice.apply(self.conv(x) + x)


class Refusing(Residual):
    def forward(self, x: Tensor) -> Tensor:
        raise ValueError(f"not {self.conv.in_channels}")


@pytest.mark.parametrize(("cls", "verdict"), [(Residual, "pass"), (ResidualWrongly, "fail")])
def test_a_module_that_takes_nothing_is_made_with_other_guesses(cls: type, verdict: str):
    op = from_object(cls)
    assert op.constructor == {"inner": 4, "outer": 3}
    assert samples_for(op, Settings())[0].args[0].shape[1] == 4
    assert op.constructor == {"inner": 4, "outer": 4}
    assert op.call is op.module
    assert op.notes == [
        f"constructed as {cls.__name__}(inner=4, outer=4); the arguments are guesses"
    ]
    assert gradlint.check(cls, order=1).targets[0].verdict == verdict


def test_what_is_refused_is_told_of_the_first_guess():
    op = from_object(Refusing)
    with pytest.raises(NoInputsFound) as caught:
        samples_for(op, Settings())
    assert "not 4" in caught.value.attempts[0][1]
    assert op.constructor == {"inner": 4, "outer": 3}


def test_arguments_that_were_told_stay():
    op = from_object(Residual, constructor={"inner": 4, "outer": 3})
    with pytest.raises(NoInputsFound):
        samples_for(op, Settings())
    assert op.constructor == {"inner": 4, "outer": 3}
