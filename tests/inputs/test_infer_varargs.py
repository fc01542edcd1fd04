"""How many arguments ``*args`` stands for: those that forward depends on."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.inputs._infer import infer
from gradlint.targets.build import from_object


class Square(Function):
    """Takes its argument alone, or behind a context."""

    @staticmethod
    def forward(*args):
        assert len(args) in (1, 2)
        return args[-1].square()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[-1])

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2.0 * x * grad_output


class Six(Square):
    """Takes rows of six only."""

    @staticmethod
    def forward(*args):
        assert len(args) in (1, 2)
        return args[-1].view(-1, 6).square().reshape(args[-1].shape)


class Total(Function):
    """Depends on all arguments; backward returns a gradient for one of them."""

    @staticmethod
    def forward(ctx, *terms):
        return torch.stack([term.sum() for term in terms]).sum()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class Through(Function):
    """Any function, and the gradient as it is."""

    @staticmethod
    def forward(ctx, op, *args, **kwargs):
        return op(*args, **kwargs)

    @staticmethod
    def backward(ctx, *grads):
        return (None, *grads)


def rounded(x):
    return Rounds.apply(torch.round, x)


class Rounds(Through):
    """Any function, with the gradient as it is: a straight-through estimator."""


class TooFew(Function):
    """A product of all, and the gradient as it is: too few of them."""

    @staticmethod
    def forward(ctx, scale, *args):
        return args[0] * args[-1] * (2.0 if scale else 1.0)

    @staticmethod
    def backward(ctx, *grads):
        return (None, *grads)


class Moved(Function):
    """A moving average."""

    @staticmethod
    def forward(ctx, *args):
        updates, mu, decay = args
        ctx.decay = decay
        return mu.mul(decay).add(updates, alpha=1 - decay)

    @staticmethod
    def backward(ctx, *args):
        (g,) = args
        return (1 - ctx.decay) * g, ctx.decay * g, None


class WrongMoved(Moved):
    @staticmethod
    def backward(ctx, *args):
        (g,) = args
        return ctx.decay * g, ctx.decay * g, None


class Scaled(Function):
    @staticmethod
    def forward(ctx, *args):
        mu, nu, (eps, count) = args
        ctx.save_for_backward(mu, nu)
        ctx.others = (eps, count)
        return mu / (1 + nu * nu + eps) / count

    @staticmethod
    def backward(ctx, g):
        mu, nu = ctx.saved_tensors
        eps, count = ctx.others
        d = 1 + nu * nu + eps
        return g / d / count, -2 * nu * g * mu / d**2 / count, None


class WrongScaled(Scaled):
    @staticmethod
    def backward(ctx, g):
        mu, nu = ctx.saved_tensors
        eps, count = ctx.others
        d = 1 + nu * nu + eps
        return g / d / count, -nu * g * mu / d**2 / count, None


def count(op: type[Function]) -> int:
    return len(infer(from_object(op), seed=1)[0].args)


def test_what_forward_ignores_is_left_out() -> None:
    assert count(Square) == 1
    assert count(Six) == 1


def test_what_forward_uses_stays() -> None:
    assert count(Total) == 2


def errors(op: type[Function]) -> list[tuple[str, str | None]]:
    (report,) = gradlint.check(op, seed=0, order=1, select=["GL0", "GL1", "GL2", "GL4"]).targets
    return [(f.code, f.input) for f in report.findings if f.severity in ("error", "warning")]


def test_as_many_arguments_as_the_stand_in_has_outputs() -> None:
    assert count(Through) == 2  # the function, and one tensor
    assert all(code != "GL101" for code, _ in errors(Through))


def test_the_function_that_a_call_passes() -> None:
    function, _ = infer(from_object(Rounds), seed=1)[0].args
    assert function is torch.round
    assert errors(Rounds) == []


def test_too_few_gradients_without_a_stand_in_are_a_fault() -> None:
    assert [code for code, _ in errors(TooFew)] == ["GL101"]


def test_names_that_forward_gives_to_its_arguments() -> None:
    updates, mu, decay = infer(from_object(Moved), seed=1)[0].args
    assert updates.shape == mu.shape
    assert isinstance(decay, float)
    _, _, (eps, number) = infer(from_object(Scaled), seed=1)[0].args
    assert isinstance(eps, float)
    assert isinstance(number, (int, float))


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (Moved, []),
        (Scaled, []),
        (WrongMoved, [("GL401", "args[0]")]),
        (WrongScaled, [("GL401", "args[1]")]),
    ],
)
def test_gradients_of_such_arguments_are_judged(op, expected) -> None:
    assert errors(op) == expected


class WeightedMean(Function):
    """A weighted mean of tensors: weights below zero count as zero."""

    @staticmethod
    def forward(ctx, w, eps, *xs):
        ctx.eps = eps
        ctx.save_for_backward(w, *xs)
        r = w.clamp(min=0)
        n = r / (r.sum() + eps)
        return sum(n[i] * x for i, x in enumerate(xs))

    @staticmethod
    def backward(ctx, g):
        w, *xs = ctx.saved_tensors
        r = w.clamp(min=0)
        total = r.sum() + ctx.eps
        n = r / total
        along = torch.stack([(g * x).sum() for x in xs])
        return (along - (n * along).sum()) / total * (w > 0), None, *(g * v for v in n)


class SwappedMean(WeightedMean):
    """Gives each tensor the gradient of another one."""

    @staticmethod
    def backward(ctx, g):
        to_w, _, *to_xs = WeightedMean.backward(ctx, g)
        return (to_w, None, *reversed(to_xs))


class Unnormalised(WeightedMean):
    """Forgets that a weight is part of the sum that all are divided by."""

    @staticmethod
    def backward(ctx, g):
        w, *xs = ctx.saved_tensors
        total = w.clamp(min=0).sum() + ctx.eps
        along = torch.stack([(g * x).sum() for x in xs])
        return (along / total * (w > 0), None, *WeightedMean.backward(ctx, g)[2:])


class Alone(WeightedMean):
    """Forgets what a weight does to the shares of the others."""

    @staticmethod
    def backward(ctx, g):
        w, *xs = ctx.saved_tensors
        r = w.clamp(min=0)
        total = r.sum() + ctx.eps
        along = torch.stack([(g * x).sum() for x in xs])
        to_w = along * (1 - r / total) / total * (w > 0)
        return (to_w, None, *WeightedMean.backward(ctx, g)[2:])


class Unmasked(WeightedMean):
    """Gives a gradient to weights below zero, too."""

    @staticmethod
    def backward(ctx, g):
        w, *xs = ctx.saved_tensors
        r = w.clamp(min=0)
        total = r.sum() + ctx.eps
        along = torch.stack([(g * x).sum() for x in xs])
        to_w = (along - (r / total * along).sum()) / total
        return (to_w, None, *WeightedMean.backward(ctx, g)[2:])


class Paired(Function):
    """A number for each of the tensors, taken side by side."""

    @staticmethod
    def forward(ctx, scales, *terms):
        ctx.save_for_backward(scales, *terms)
        return torch.stack([s * t.sum() for s, t in zip(scales, terms, strict=False)])

    @staticmethod
    def backward(ctx, g):
        scales, *terms = ctx.saved_tensors
        to_scales = g * torch.stack([term.sum() for term in terms])
        pairs = zip(g, scales, terms, strict=False)
        return to_scales, *(v * s * torch.ones_like(t) for v, s, t in pairs)


@pytest.mark.parametrize("op", [WeightedMean, Paired])
@pytest.mark.parametrize("seed", range(4))
def test_one_number_for_each_tensor(op: type[Function], seed: int) -> None:
    sample = infer(from_object(op), seed)[0]
    numbers, *rest = sample.args
    tensors = [value for value in rest if isinstance(value, torch.Tensor)]
    assert numbers.shape == (2,)
    assert len(tensors) == 2
    assert all(tensor.requires_grad for tensor in tensors)
    assert (0, 0) in sample.held


def test_all_weights_count() -> None:
    w = infer(from_object(WeightedMean), seed=0)[0].args[0]
    assert bool((w > 0).all())


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (WeightedMean, set()),
        (Paired, set()),
        (SwappedMean, {("GL401", "xs[0]"), ("GL401", "xs[1]")}),
        (Unnormalised, {("GL401", "w")}),
        (Alone, {("GL401", "w")}),
        (Unmasked, {("GL401", "w")}),
    ],
)
def test_gradients_of_weighted_tensors_are_judged(op, expected) -> None:
    found = set(errors(op))
    assert {item for item in found if item[0] == "GL401"} == expected
    assert bool(found) == bool(expected)


class Last(Function):
    """Reads one argument of any number, if its weight is above zero."""

    @staticmethod
    def forward(ctx, w, *xs):
        ctx.number = len(xs)
        ctx.save_for_backward(w, xs[-1])
        return w.clamp(min=0) * xs[-1].square()

    @staticmethod
    def backward(ctx, g):
        w, x = ctx.saved_tensors
        to_w = (g * x.square()).sum_to_size(w.shape) * (w > 0)
        to_x = (2.0 * x * w.clamp(min=0) * g).sum_to_size(x.shape)
        return to_w, *(None,) * (ctx.number - 1), to_x


def test_what_no_draw_depends_on_is_left_out() -> None:
    assert count(Last) == 2


class Shown(Function):
    """The mean of tensors, times a number for each column.

    >>> Shown.apply(torch.ones(4), torch.ones(3, 4), torch.ones(3, 4))
    """

    @staticmethod
    def forward(ctx, scale, *xs):
        ctx.save_for_backward(scale, *xs)
        return scale * sum(xs) / len(xs)

    @staticmethod
    def backward(ctx, g):
        scale, *xs = ctx.saved_tensors
        to_scale = (g * sum(xs) / len(xs)).sum(0)
        return to_scale, *(scale * g / len(xs) for _ in xs)


def test_a_call_that_shows_what_comes_before_them() -> None:
    scale, *xs = infer(from_object(Shown), seed=0)[0].args
    assert scale.dim() == 1
    assert len(xs) == 2
    assert xs[0].shape == xs[1].shape
    assert xs[0].shape[1:] == scale.shape


def test_members_are_not_told_to_be_tied_to_themselves() -> None:
    (main, *_) = infer(from_object(Shown), seed=0)
    (axes,) = [note for note in main.notes if note.startswith("xs:")]
    assert axes.endswith("), axis 1 tied to axis 0 of scale")


class Fused(torch.nn.Module):
    """A weighted mean of as many tensors as it was made for."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(inputs))
        self.eps = 1e-4

    def forward(self, *xs: torch.Tensor) -> torch.Tensor:
        return WeightedMean.apply(self.w, self.eps, *xs)


class FusedList(torch.nn.Module):
    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(inputs))

    def forward(self, xs: list[torch.Tensor]) -> torch.Tensor:
        return Paired.apply(self.w, *xs)


class Summed(Function):
    """The sum of tensors, each of whose rows is weighted in the same way."""

    @staticmethod
    def forward(ctx, w, *xs):
        ctx.save_for_backward(w, *xs)
        return w * sum(xs)

    @staticmethod
    def backward(ctx, g):
        w, *xs = ctx.saved_tensors
        to_w = (g * sum(xs)).sum_to_size(w.shape)
        return to_w, *(g * w for _ in xs)


class OfColumns(torch.nn.Module):
    """Its weights are as many as columns, and say nothing of how many tensors there are."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(width))

    def forward(self, *xs: torch.Tensor) -> torch.Tensor:
        return Summed.apply(self.w, *xs)


class FusedWrongly(Fused):
    def forward(self, *xs: torch.Tensor) -> torch.Tensor:
        return Unnormalised.apply(self.w, self.eps, *xs)


def test_as_many_tensors_as_the_module_has_weights() -> None:
    for made in (Fused, FusedList):
        op = from_object(made)
        assert op.constructor["inputs"] > 2
        args = infer(op, seed=0)[0].args
        given = args if made is Fused else args[0]
        assert len(given) == op.constructor["inputs"]
    op = from_object(OfColumns)
    given = infer(op, seed=0)[0].args
    assert {tensor.shape[-1] for tensor in given} == {op.constructor["width"]}
    assert len(given) == 2


def test_gradients_of_a_modules_weights_are_judged() -> None:
    assert errors(Fused) == []
    assert {item for item in errors(FusedWrongly) if item[0] == "GL401"} == {("GL401", "w")}
    assert errors(FusedList) == errors(OfColumns) == []


class Kraus(Function):
    """Sum of K rho K^T over any number of matrices."""

    @staticmethod
    def forward(ctx, rho, *ops):
        ctx.save_for_backward(rho, *ops)
        out = torch.zeros_like(rho)
        for K in ops:
            out = out + K @ rho @ K.mT
        return out

    @staticmethod
    def backward(ctx, g):
        rho, *ops = ctx.saved_tensors
        by_rho = sum(K.mT @ g @ K for K in ops)
        return by_rho, *(g @ K @ rho.mT + g.mT @ K @ rho for K in ops)


def test_what_a_loop_goes_through_is_not_left_empty():
    rho, *ops = infer(from_object(Kraus))[0].args
    assert {op.shape for op in ops} == {rho.shape}
