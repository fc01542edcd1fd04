"""Inference on small operators, each of which needs one mechanism."""

from __future__ import annotations

import math
import pickle
from types import SimpleNamespace
from typing import Literal

import pytest
import torch
from torch.autograd import Function

from gradlint.inputs import _search
from gradlint.inputs._infer import infer
from gradlint.inputs.not_found import NoInputsFound
from gradlint.model.sample import Sample, map_tensors
from gradlint.targets.build import from_object


def inferred(thing, seed: int = 0) -> list[Sample]:
    return infer(from_object(thing), seed)


def shapes(sample: Sample) -> list[object]:
    return [tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in sample.args]


class Linear(Function):
    @staticmethod
    def forward(ctx, x, weight, bias=None):
        ctx.save_for_backward(x, weight)
        out = x.mm(weight.t())
        return out if bias is None else out + bias

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        bias = grad.sum(0) if ctx.needs_input_grad[2] else None
        return grad.mm(weight), grad.t().mm(x), bias


def test_sizes_are_unequal_and_tied_where_they_must_be():
    main, without = inferred(Linear)
    x, weight, bias = shapes(main)
    assert x[1] == weight[1]
    assert bias == (weight[0],)
    assert len({x[0], x[1], weight[0]}) == 3
    assert 1 not in (*x, *weight)
    assert all(t.dtype == torch.float64 and t.requires_grad for t in main.args)
    assert f"weight: {weight}, axis 1 tied to axis 1 of x" in main.notes
    assert without.label == "bias=None"
    assert without.args[2] is None


class WrongShape(Function):
    """The gradient of ``weight`` is transposed: right only where ``weight`` is square."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight.mT, grad.mT @ x


class BackwardRaises(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.mT

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight.mT, grad.mT @ x


@pytest.mark.parametrize("op", [WrongShape, BackwardRaises])
def test_a_broken_backward_gets_no_square_matrices(op):
    (sample,) = inferred(op)
    x, weight = shapes(sample)
    assert x[0] != x[1]
    assert weight[0] != weight[1]
    assert any("backward raises" in note for note in sample.notes)


class ReducedGradient(Function):
    """The gradient of the sum is handed on as it is, right only for one number."""

    @staticmethod
    def forward(ctx, x):
        return x.relu().sum()

    @staticmethod
    def backward(ctx, grad):
        return grad


def test_a_broken_backward_gets_no_scalars():
    (sample,) = inferred(ReducedGradient)
    assert shapes(sample) == [(3, 4)]


class OneTooFew(Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * y

    @staticmethod
    def backward(ctx, grad):
        return grad


def test_a_wrong_count_of_gradients_is_no_reason_to_search_on():
    (sample,) = inferred(OneTooFew)
    assert shapes(sample) == [(3, 4), (3, 4)]
    assert all(t.requires_grad for t in sample.args)


class Images(Function):
    @staticmethod
    def forward(ctx, features, scale):
        n, c, h, w = features.shape
        ctx.scale = scale
        return features.reshape(n, c, h * w) * scale

    @staticmethod
    def backward(ctx, grad):
        return None, None


def test_unpacking_a_shape_gives_the_rank():
    (sample,) = inferred(Images)
    assert len(sample.args[0].shape) == 4
    assert len(set(sample.args[0].shape)) == 4


def asserts(x: torch.Tensor, y):
    assert x.dim() == 3, "batched only"
    if y.shape[-1] != 3:
        raise ValueError("points")
    assert x.size(2) == y.size(0)
    return x @ y


def test_failed_conditions_are_mended():
    (sample,) = inferred(asserts)
    x, y = shapes(sample)
    assert len(x) == 3
    assert y == (x[2], 3)


def unique(x, n):
    if not isinstance(n, int):
        raise TypeError("n")
    if n < 3:
        raise ValueError("n must be at least 3")
    return x**n


def test_an_integer_that_is_too_small_is_raised():
    (sample,) = inferred(unique)
    assert isinstance(sample.args[1], int)
    assert sample.args[1] >= 3
    assert any(note.startswith("n = ") for note in sample.notes)


def modes(x, mode):
    if mode == "relu":
        return x.relu()
    if mode == "square":
        return x * x
    raise ValueError("mode")


def test_strings_come_from_comparisons():
    samples = inferred(modes)
    assert [sample.args[1] for sample in samples] == ["relu", "square"]
    assert [sample.label for sample in samples] == ["inferred", "mode='square'"]


def literal(x, how: Literal["up", "down"]):
    return {"up": x.exp, "down": x.neg}[how]()


def test_strings_come_from_annotations():
    assert inferred(literal)[0].args[1] == "up"


@pytest.mark.parametrize(
    ("function", "low", "high"),
    [
        (torch.acosh, 1.0, math.inf),
        (torch.atanh, -1.0, 1.0),
        (torch.log, 0.0, math.inf),
        (torch.exp, -math.inf, math.inf),
    ],
)
def test_domains(function, low, high):
    def op(x):
        return function(x)

    (sample,) = inferred(op)
    values = sample.args[0].detach()
    assert low < float(values.min())
    assert float(values.max()) < high
    assert (sample.domains["x"] == "all reals") == (low == -math.inf)


def cholesky(matrix):
    return torch.linalg.cholesky(matrix)


def test_definite_matrices():
    (sample,) = inferred(cholesky)
    matrix = sample.args[0].detach()
    assert matrix.shape[0] == matrix.shape[1]
    assert float(torch.linalg.eigvalsh(matrix).min()) > 0
    assert sample.domains["matrix"] == "symmetric positive definite"


class Gather(Function):
    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        ctx.shape = x.shape
        return x.gather(1, index)

    @staticmethod
    def backward(ctx, grad):
        (index,) = ctx.saved_tensors
        return grad.new_zeros(ctx.shape).scatter_add(1, index, grad), None


def test_indices_are_integers_in_range():
    (sample,) = inferred(Gather)
    x, index = sample.args
    assert index.dtype == torch.int64
    assert not index.requires_grad
    assert index.dim() == x.dim()
    assert int(index.max()) < x.shape[1]


class Permute(Function):
    @staticmethod
    def forward(ctx, x, order, order_inv):
        ctx.save_for_backward(order_inv)
        return x.index_select(0, order)

    @staticmethod
    def backward(ctx, grad):
        (order_inv,) = ctx.saved_tensors
        return grad.index_select(0, order_inv), None, None


def takes(x, ind, ind_inv, dim):
    return torch.take_along_dim(x, ind, dim) + torch.take_along_dim(x, ind_inv, dim)


def test_an_inverse_permutation_inverts():
    (sample,) = inferred(takes)
    _, ind, inverse, _ = sample.args
    assert torch.equal(ind.gather(-1, inverse), torch.arange(ind.shape[-1]).expand_as(ind))


def masked(x, mask):
    return x.masked_fill(mask, 0.0)


def test_masks_are_boolean_with_both_values():
    (sample,) = inferred(masked)
    mask = sample.args[1]
    assert mask.dtype == torch.bool
    assert 0 < int(mask.sum()) < mask.numel()


class NotDifferentiable(Function):
    @staticmethod
    def forward(ctx, x, target, weight: torch.Tensor | None = None):
        ctx.save_for_backward(target)
        return (x - target).square()

    @staticmethod
    def backward(ctx, grad):
        return grad, None, None


def test_none_in_backward_means_no_gradient_wanted():
    sample = inferred(NotDifferentiable)[0]
    x, target, weight = sample.args
    assert x.requires_grad
    assert not (target.is_floating_point() and target.requires_grad)
    assert weight is None


class InPlace(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)

    @staticmethod
    def backward(ctx, grad):
        return grad * 3


def test_in_place_ops_run_on_copies():
    (sample,) = inferred(InPlace)
    assert sample.args[0].is_leaf
    again = inferred(InPlace)[0].args[0]
    assert torch.equal(sample.args[0], again)


class Style(Function):
    @staticmethod
    def forward(x, dim):
        return x.cumsum(dim)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, dim = inputs
        ctx.dim = dim

    @staticmethod
    def backward(ctx, grad):
        return grad.flip(ctx.dim).cumsum(ctx.dim).flip(ctx.dim), None


def test_setup_context_and_the_other_axis():
    samples = inferred(Style)
    assert [sample.args[1] for sample in samples] == [-1, 0]


class Base(Function):
    @classmethod
    def forward(cls, ctx, x, options):
        return cls.apply_to(x, **options)

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Derived(Base):
    @classmethod
    def apply_to(cls, x, power=2):
        return x**power

    @classmethod
    def forward(cls, ctx, x, power=2):
        return super().forward(ctx, x, {"power": power})


def test_classmethods_and_super():
    assert shapes(inferred(Derived)[0]) == [(3, 4), 2]


def only_float32(x):
    if x.dtype != torch.float32:
        raise TypeError("expected float32")
    return x * 2


def only_bfloat16(x):
    assert x.dtype == torch.bfloat16
    return x * x


def only_half(x):
    if x.dtype != torch.float16:
        raise TypeError("expected scalar type Half but found Double")
    return x * x


@pytest.mark.parametrize(
    ("op", "dtype"), [(only_bfloat16, torch.bfloat16), (only_half, torch.float16)]
)
def test_16_bits_where_all_else_is_refused(op, dtype):
    (sample,) = inferred(op)
    assert sample.args[0].dtype == dtype
    assert any("the op refused float64" in note for note in sample.notes)


def test_float32_where_float64_is_refused():
    (sample,) = inferred(only_float32)
    assert sample.args[0].dtype == torch.float32
    assert "in float32: the op refused float64" in sample.notes


def complex_only(z):
    assert z.is_complex()
    return z.conj() * z


def test_complex_inputs():
    (sample,) = inferred(complex_only)
    assert sample.args[0].dtype == torch.complex128
    assert sample.args[0].requires_grad


def pair(xs: tuple[torch.Tensor, torch.Tensor], *, scale: float):
    first, second = xs
    return first @ second * scale


def state(inputs: dict[str, torch.Tensor]):
    return inputs["hidden"] * inputs["gate"]


def many(*tensors):
    return sum(tensors)


def test_containers_keywords_and_varargs():
    sample = inferred(pair)[0]
    first, second = sample.args[0]
    assert first.shape[1] == second.shape[0]
    assert list(sample.kwargs) == ["scale"]
    assert list(inferred(state)[0].args[0]) == ["hidden", "gate"]
    assert [a.shape for a in inferred(many)[0].args] == [(3, 4), (3, 4)]


def flow(f, x, steps):
    for _ in range(steps):
        x = x + 0.1 * f(x)
    return x


def test_function_arguments():
    sample = inferred(flow)[0]
    assert callable(sample.args[0])
    assert any("a stand-in" in note for note in sample.notes)
    assert not any("0x" in note for note in sample.notes)


@pytest.mark.parametrize(
    "module",
    [
        torch.nn.Linear(7, 5),
        torch.nn.Conv2d(6, 4, 3),
        torch.nn.Embedding(10, 4),
        torch.nn.GroupNorm(2, 6),
        torch.nn.LSTM(5, 6),
        torch.nn.Bilinear(3, 4, 5),
    ],
    ids=lambda module: type(module).__name__,
)
def test_modules(module):
    sample = inferred(module)[0]
    double = module.double()
    args = map_tensors(sample.args, lambda tensor: tensor.detach())
    assert double(*args) is not None


def test_library_ops():
    op = from_object(torch.ops.aten.mm)
    sample = infer(op)[0]
    assert sample.args[0].shape[1] == sample.args[1].shape[0]


def test_same_seed_same_samples():
    first, again, other = (inferred(Linear, seed)[0] for seed in (3, 3, 4))
    assert all(torch.equal(a, b) for a, b in zip(first.args, again.args, strict=True))
    assert not torch.equal(first.args[0], other.args[0])


class Clock:
    """Time that passes while :func:`slow` is called: on the wall, and of the CPU."""

    def __init__(self, monkeypatch, wall, cpu):
        self.now, self.each = [0.0, 0.0], (wall, cpu)
        clock = SimpleNamespace(process_time=lambda: self.now[1])
        monkeypatch.setattr(_search, "time", clock)
        monkeypatch.setattr(_search, "had_seconds", lambda: self.now[0])

    def tick(self):
        self.now = [now + each for now, each in zip(self.now, self.each, strict=True)]


def inferred_slowly(monkeypatch, wall, cpu):
    clock = Clock(monkeypatch, wall, cpu)

    class Slow(Linear):
        @staticmethod
        def forward(ctx, x, weight, bias=None):
            clock.tick()
            return Linear.forward(ctx, x, weight, bias)

    return inferred(Slow)


def test_a_busy_machine_does_not_change_what_is_inferred(monkeypatch):
    usual = inferred(Linear)
    found = inferred_slowly(monkeypatch, 0.5, 0.001)
    assert [shapes(sample) for sample in found] == [shapes(sample) for sample in usual]
    assert [sample.notes for sample in found] == [sample.notes for sample in usual]


@pytest.mark.parametrize(("wall", "cpu"), [(4.5, 0.001), (3.0, 3.0)])
def test_a_search_that_is_cut_short_says_so(monkeypatch, wall, cpu):
    notes = inferred_slowly(monkeypatch, wall, cpu)[0].notes
    assert notes[-1].startswith("the search for inputs was cut short after ")


def test_random_state_and_defaults_are_left_alone():
    def rude(x):
        torch.manual_seed(1)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        return x * torch.rand(())

    torch.manual_seed(7)
    before = torch.get_rng_state()
    inferred(rude)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_default_dtype() == torch.float32
    assert torch.is_grad_enabled()


def exits(x):
    raise SystemExit(3)


def interrupts(x):
    raise KeyboardInterrupt


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def unreadable(x):
    raise Unreadable


@pytest.mark.parametrize(
    ("op", "text"),
    [(exits, "SystemExit: 3"), (interrupts, "KeyboardInterrupt"), (unreadable, "Unreadable")],
)
def test_whatever_the_op_raises_is_an_attempt(op, text):
    with pytest.raises(NoInputsFound) as caught:
        inferred(op)
    assert caught.value.attempts[0][1].startswith(text)
    assert caught.value.attempts[0][0].startswith("x: float (")


class Hopeless(Function):
    @staticmethod
    def forward(ctx, x, mask, dim, reduction):
        raise RuntimeError("needs the moon")

    @staticmethod
    def backward(ctx, grad):
        return grad, None, None, None


def test_no_inputs_found_tells_what_to_add():
    with pytest.raises(NoInputsFound) as caught:
        inferred(Hopeless)
    error = caught.value
    assert 1 <= len(error.attempts) <= 8
    assert error.attempts[0][1] == "RuntimeError: needs the moon"
    assert error.count >= _search.HOPELESS
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.attempts, copy.line_to_add) == (error.attempts, error.line_to_add)
    assert "def sample_inputs():" in error.line_to_add
    assert "# x, mask, dim, reduction" in error.line_to_add
    namespace: dict[str, object] = {"torch": torch}
    exec(error.line_to_add.replace("@staticmethod\n", ""), namespace)
    made = namespace["sample_inputs"]()
    assert [type(item) for item in made] == [torch.Tensor, torch.Tensor, int, str]


class HopelessTuple(Hopeless):
    @staticmethod
    def forward(ctx, *parts):
        raise RuntimeError("needs the moon")


def test_the_line_to_add_names_arguments_that_a_star_collects():
    with pytest.raises(NoInputsFound) as caught:
        inferred(HopelessTuple)
    assert "# *parts\n" in caught.value.line_to_add
