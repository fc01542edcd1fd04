"""Low precision against float64: right gradients agree, wrong ones are seen to what is stated."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradlint.numerics.twin import compare
from gradlint.numerics.verdict import AGREES, DIFFERS, UNSURE

F = torch.nn.functional
LOW = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
MASK = torch.arange(48).reshape(6, 8) % 3 == 1
PLACES = torch.arange(60) * 7 % 9

# Name → (shapes and scales of the inputs, function). Autograd's own gradients.
RIGHT = {
    "softmax": ([(6, 9)], lambda x: (4 * x).softmax(-1)),
    "masked softmax": ([(6, 8)], lambda x: x.masked_fill(MASK, -torch.inf).softmax(-1)),
    "layer norm": ([(5, 12), (12,)], lambda x, w: F.layer_norm(x, (12,), w)),
    "logsumexp": ([(6, 9)], lambda x: x.logsumexp(-1)),
    "matmul": ([(5, 70), (70, 4)], torch.matmul),
    "cumsum": ([(3, 90)], lambda x: x.cumsum(-1)),
    "cumprod": ([(3, 9)], lambda x: x.cumprod(-1)),
    "variance far from 0": ([(5, 20)], lambda x: (x + 5).var(-1)),
    "norm": ([(5, 20)], lambda x: x.norm(dim=-1)),
    "gelu": ([(60,)], F.gelu),
    "convolution": ([(2, 3, 6, 6), (4, 3, 3, 3)], lambda x, w: F.conv2d(x, w, padding=1)),
    "attention": ([(5, 8), (6, 8), (6, 3)], lambda q, k, v: (q @ k.mT).softmax(-1) @ v),
    "division near 0": ([(40,), (40,)], lambda x, y: x / (0.1 * y)),
    "long sum": ([(9000,), (9000,)], lambda x, w: (x * w).sum()),
    "tanh, saturated": ([(60,)], lambda x: (6 * x).tanh()),
    "sigmoid, saturated": ([(60,)], lambda x: (9 * x).sigmoid()),
    "exp": ([(60,)], lambda x: (3 * x).exp()),
    "embedding": ([(9, 4)], lambda w: F.embedding(PLACES, w)),
    "scatter": ([(60,)], lambda x: x.new_zeros(9).index_add(0, PLACES, x)),
    "relu of a product": ([(20, 12), (12, 20)], lambda x, w: (x @ w).relu()),
    "largest": ([(9, 30)], lambda x: (1.1 * x).amax(-1)),
    "sorted": ([(5, 30)], lambda x: (1.1 * x).sort(-1).values),
    "rounded": ([(60,)], lambda x: x * (20 * x).round()),
    "random mask": ([(80,)], lambda x: x * (torch.rand(x.shape, dtype=x.dtype) > 0.3)),
    "dropout": ([(80,)], lambda x: F.dropout(x, 0.3)),
    "constants": ([(60,)], lambda x: x * torch.tensor([0.1], dtype=x.dtype)),
}


def seeded(function):
    def call(*values):
        torch.manual_seed(11)
        return function(*values)

    return call


@pytest.fixture
def pair(as_map, randn):
    """The maps of one function in a low dtype, perhaps with faults, and in float64."""

    def build(function, shapes, dtype, seed=0, faults=None):
        values = [
            randn(*shape, seed=10 * seed + place).to(dtype) for place, shape in enumerate(shapes)
        ]
        call = seeded(function)
        return (
            as_map(call, values, faults=faults),
            as_map(call, [value.double() for value in values]),
        )

    return build


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("name", RIGHT)
def test_right_gradients_agree(name, dtype, pair):
    shapes, function = RIGHT[name]
    for seed in range(3):
        for found in compare(*pair(function, shapes, LOW[dtype], seed), seed=seed):
            assert found.verdict == AGREES, (seed, found)
            assert found.resolution < (1e-4 if dtype == "float32" else 0.3)


def large(gradient):
    """Position of an element that is at least a tenth of the largest: the same for every call."""
    flat = gradient.detach().abs().double().flatten()
    return int(torch.nonzero(flat >= 0.3 * flat.max())[-1])


def fixed(change):
    places = []

    def fault(gradient):
        places.append(large(gradient))
        flat = gradient.flatten()
        flat[places[0]] = change(flat[places[0]])
        return flat.reshape(gradient.shape)

    return fault


SMOOTH = ("softmax", "layer norm", "matmul", "gelu", "convolution", "attention", "scatter")


@pytest.mark.parametrize("dtype", LOW)
@pytest.mark.parametrize("name", SMOOTH)
def test_one_wrong_element_differs(name, dtype, pair):
    shapes, function = RIGHT[name]
    for seed, change in enumerate((lambda value: 0 * value, lambda value: -value)):
        maps = pair(function, shapes, LOW[dtype], seed, {0: fixed(change)})
        first, *others = compare(*maps, seed=seed)
        assert (first.verdict, first.differing) == (DIFFERS, 1)
        assert first.elements[0].allowed < abs(first.elements[0].low - first.elements[0].wide)
        assert all(item.verdict == AGREES for item in others)


@pytest.mark.parametrize("name", SMOOTH)
def test_a_hundredth_too_much_is_seen_in_float32(name, pair):
    shapes, function = RIGHT[name]
    maps = pair(function, shapes, torch.float32, 4, {0: lambda gradient: 1.01 * gradient})
    assert compare(*maps, seed=4, inputs=[0])[0].verdict == DIFFERS


@pytest.mark.parametrize("name", SMOOTH)
def test_a_tenth_too_much_is_seen_in_bfloat16(name, pair):
    shapes, function = RIGHT[name]
    maps = pair(function, shapes, torch.bfloat16, 4, {0: lambda gradient: 1.1 * gradient})
    first = compare(*maps, seed=4, inputs=[0])[0]
    assert first.verdict == DIFFERS


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_cast_inside_float32_is_seen(dtype, pair):
    shapes, function = RIGHT["gelu"]
    maps = pair(function, shapes, torch.float32, 0, {0: lambda g: g.to(dtype).to(g.dtype)})
    (found,) = compare(*maps, seed=0)
    assert found.verdict == DIFFERS
    assert found.differing > 30
    assert found.resolution < 1e-5


class OneByOne(Function):
    """The gradient of the weight is added up in its own dtype, row by row."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        total = torch.zeros_like(weight)
        for row in (g * x).abs().unbind():
            total.add_(row)
        return g * weight, total


class AtOnce(OneByOne):
    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        return g * weight, (g * x).abs().sum(0)


def test_a_sum_that_stagnates_is_seen(pair):
    shapes = [(1200, 3), (3,)]
    _, weight = compare(*pair(OneByOne.apply, shapes, torch.bfloat16), seed=0)
    assert weight.verdict == DIFFERS
    assert weight.differing == 3
    assert all(abs(item.low) < 0.7 * abs(item.wide) for item in weight.elements)
    for found in compare(*pair(AtOnce.apply, shapes, torch.bfloat16), seed=0):
        assert found.verdict == AGREES


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: x.float().exp().to(x.dtype), "lower precision in float64 too"),
        (lambda x: x * (2 if x.dtype == torch.float64 else 1), "differ by more than rounding"),
        (lambda x: x if x.dtype == torch.float64 else x[:5], "other outputs"),
    ],
)
def test_what_is_no_twin_decides_nothing(function, said, pair):
    (found,) = compare(*pair(function, [(30,)], torch.float32), seed=0)
    assert found.verdict == UNSURE
    assert not found.compared
    assert said in found.reason


def test_a_backward_that_refuses_float64_decides_nothing(as_map, randn):
    def vjp(v, x):
        if x.dtype == torch.float64:
            raise RuntimeError("expected scalar type Float but found Double")
        return [v * x.exp()]

    x = randn(20, dtype=torch.float32)
    maps = as_map(torch.exp, [x], vjp=vjp), as_map(torch.exp, [x.double()], vjp=vjp)
    (found,) = compare(*maps, seed=0)
    assert found.verdict == UNSURE
    assert not found.compared


class Numpy(Function):
    """Out of sight of PyTorch, as a kernel of one's own is; ``factor`` spoils it in float32."""

    @staticmethod
    def forward(ctx, x, factor):
        y = torch.from_numpy(1 / (1 + (-x.detach()).exp().numpy()))
        ctx.save_for_backward(y)
        ctx.factor = factor
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        wrong = ctx.factor if g.dtype != torch.float64 else 1.0
        n = y.numpy()
        return torch.from_numpy(g.numpy() * n * (1 - n)) * wrong, None


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, AGREES), (1.01, DIFFERS)])
def test_work_out_of_sight_is_judged_by_its_conditioning(factor, verdict, pair):
    maps = pair(lambda x: Numpy.apply(4 * x, factor), [(60,)], torch.float32)
    (found,) = compare(*maps, seed=0)
    assert found.verdict == verdict


def test_overflow_is_left_alone(pair):
    maps = pair(lambda x: x * 1e5, [(40,)], torch.float16)
    (found,) = compare(*maps, seed=0)
    assert found.verdict in (AGREES, UNSURE)


def test_empty_inputs_agree(pair):
    (found,) = compare(*pair(torch.exp, [(0, 3)], torch.float32), seed=0)
    assert found.verdict in (AGREES, UNSURE)
