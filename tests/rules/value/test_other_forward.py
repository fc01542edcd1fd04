"""Causes that are proven by another forward, whose derivative backward returns."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import Function

from gradlint.model.report import Finding
from gradlint.rules.catalogue import by_code

RULE = by_code("GL401")


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(31 + seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def differentiates(other):
    """Makes ``forward`` an op whose backward is the derivative of ``other``: an exact derivative of
    a function that is not forward."""

    def made(forward):
        class Op(Function):
            @staticmethod
            def forward(ctx, x, *rest):
                ctx.save_for_backward(x)
                ctx.rest = rest
                return forward(x, *rest)

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                with torch.enable_grad():
                    leaf = x.detach().requires_grad_()
                    (found,) = torch.autograd.grad(other(leaf, *ctx.rest), leaf, g)
                return found, *(None for _ in ctx.rest)

        return Op

    return made


@differentiates(lambda x: x / x.norm(dim=-1, keepdim=True).detach())
def unit(x):
    return x / x.norm(dim=-1, keepdim=True)


@differentiates(
    lambda x: F.softplus(x) * torch.tanh(x).detach() - torch.tanh(x) * F.softplus(x).detach()
)
def signed_product(x):
    return F.softplus(x) * torch.tanh(x)


@differentiates(
    lambda x: torch.exp(x).detach() * x.sin() + x.sin().detach() * (2 * x.exp() - x.exp().detach())
)
def counted_twice(x):
    return torch.exp(x) * x.sin()


class Threshold(Function):
    """backward compares with another number than forward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x < 0.25, x * 0.1, x.square())

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.where(x < 0.75, torch.full_like(x, 0.1), 2 * x)


class PowerOfTwo(Function):
    """backward takes the exponent to be 2."""

    @staticmethod
    def forward(ctx, x, p=2.0, eps=1e-3):
        ctx.save_for_backward(x)
        ctx.eps = eps
        return (x.abs() + eps).pow(p)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * (x.abs() + ctx.eps) * x.sign(), None, None


class WithoutEpsilon(Function):
    """backward leaves out the epsilon of a root mean square."""

    @staticmethod
    def forward(ctx, x, eps=1e-2):
        ctx.save_for_backward(x)
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        r = torch.rsqrt(x.square().mean(-1, keepdim=True))
        return g * r - x * r**3 * (g * x).mean(-1, keepdim=True), None


class Assigned(Function):
    """Rows are picked by what forward computes; backward assigns in place of adding up."""

    @staticmethod
    def forward(ctx, table, x):
        nearest = torch.cdist(x, table).argmin(1)
        ctx.save_for_backward(table, nearest)
        return table[nearest].sin()

    @staticmethod
    def backward(ctx, g):
        table, nearest = ctx.saved_tensors
        found = torch.zeros_like(table)
        found[nearest] = g * table[nearest].cos()
        return found, None


class NotTransposed(Function):
    @staticmethod
    def forward(ctx, x, m):
        ctx.save_for_backward(x, m)
        return x @ m

    @staticmethod
    def backward(ctx, g):
        x, m = ctx.saved_tensors
        return g @ m, x.mT @ g


class InALoop(Function):
    """backward leaves out the decay's own gradient, in a loop."""

    @staticmethod
    def forward(ctx, a, x):
        ctx.save_for_backward(a, x)
        state = torch.zeros_like(x[0])
        for row in x:
            state = torch.sigmoid(a) * state + a * row
        return state

    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        with torch.enable_grad():
            leaf = a.detach().requires_grad_()
            state = torch.zeros_like(x[0])
            for row in x:
                state = torch.sigmoid(leaf).detach() * state + leaf * row
            (found,) = torch.autograd.grad(state, leaf, g)
        return found, None


class CutAtTheWrongEnd(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return F.pad(x, (1, 1)).unfold(-1, 3, 1).sin().sum(-1)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        padded = F.pad(x, (1, 1)).cos()
        found = torch.zeros_like(padded)
        for k in range(3):
            found[..., k : k + x.shape[-1]] += g * padded[..., k : k + x.shape[-1]]
        return found[..., : x.shape[-1]]


class RunningMaximum(Function):
    """What forward chooses more than once, by indices that it computes itself, is overwritten."""

    @staticmethod
    def forward(ctx, x, dim, axis_by_name):
        values, index = torch.cummax(x, dim=dim) if axis_by_name else x.cummax(dim)
        ctx.save_for_backward(index)
        ctx.dim = dim
        return values

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return torch.zeros_like(g).scatter(ctx.dim, index, g), None, None


class RunningMaximumScaled(RunningMaximum):
    """Added up, but twice as large: no index is to blame."""

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return 2.0 * torch.zeros_like(g).scatter_add(ctx.dim, index, g), None, None


CLOSE = torch.cat([draw(3, 2), draw(3, 2, seed=4) + 9.0])


class RmsSum(Function):
    """One of two terms of the gradient is summed over a row where a mean belongs."""

    @staticmethod
    def forward(ctx, x):
        scale = (x.square().mean(-1, keepdim=True) + 0.1).rsqrt()
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        return scale * g - x * scale**3 * (g * x).sum(-1, keepdim=True)


class RmsMean(Function):
    """The other way round."""

    @staticmethod
    def forward(ctx, x):
        scale = (x.square().sum(-1, keepdim=True) + 0.1).rsqrt()
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        return scale * g - x * scale**3 * (g * x).mean(-1, keepdim=True)


class RmsOff(RmsSum):
    """Counted three times, where neither a sum nor a mean is: no cause is named."""

    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        return scale * g - 3 * x * scale**3 * (g * x).mean(-1, keepdim=True)


def test_another_factor_is_no_sum_in_place_of_a_mean(probed) -> None:
    found = first(probed(RULE, RmsOff, draw(4, 5)))
    assert "for the mean" not in (found.cause_text or "")


@pytest.mark.parametrize(
    ("op", "args", "cause", "text"),
    [
        (unit, (draw(4, 3),), "taken-as-constant", "`x.norm(dim=-1, keepdim=True)`"),
        (signed_product, (draw(3, 4),), "sign", "through `torch.tanh(x)`"),
        (counted_twice, (draw(3, 4),), "scaled", "through `torch.exp(x)` "),
        (Threshold, (draw(5, 7),), "wrong-constant", "had 0.75 in place of 0.25"),
        (PowerOfTwo, (draw(3, 4), 3.0), "argument-left-out", "as if `p` were 2.0"),
        (WithoutEpsilon, (draw(3, 4),), "argument-left-out", "as if `eps` were 0.0"),
        (Assigned, (draw(2, 2), CLOSE), "repeated-index", "`table[nearest]`"),
        (RunningMaximum, (draw(3, 5), -1, True), "repeated-index", "`torch.cummax(x, dim=dim)`"),
        (RunningMaximum, (draw(5, 3), 0, False), "repeated-index", "`x.cummax(dim)`"),
        (RunningMaximumScaled, (draw(3, 5), -1, True), "scaled", "scaled"),
        (NotTransposed, (draw(3, 4), draw(4, 4)), "transposed", "as if `m` were transposed"),
        (InALoop, (draw(3), draw(5, 3)), "taken-as-constant", "`torch.sigmoid(a)`"),
        (RmsSum, (draw(4, 5),), "scaled", "takes a sum for the mean in what the gradient gets"),
        (RmsMean, (draw(4, 5),), "scaled", "takes a mean for the sum in what the gradient gets"),
        (CutAtTheWrongEnd, (draw(2, 7),), "shifted", "moved by -1 along axis 1"),
    ],
)
def test_the_fault_is_named(probed, op, args, cause, text) -> None:
    found = first(probed(RULE, op, *args))
    assert (found.cause, text in found.cause_text) == (cause, True), found.cause_text
    assert found.severity == "error"


def first(outcome) -> Finding:
    assert outcome.verdict == "fail"
    return outcome.findings[0]


class ByNumberThenTensor(Function):
    """One expression, reached with a number first and with a tensor later."""

    @staticmethod
    def part(x, a, b):
        return x * (torch.sin(a) if isinstance(a, torch.Tensor) else math.sin(a)) + a * b

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return ByNumberThenTensor.part(x, 0.5, w) + ByNumberThenTensor.part(x, w, w)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * (math.sin(0.5) + w.sin()), g * (x * w.cos() + 0.4 + 1.3 * w)


def test_an_operand_that_is_a_number_in_another_run_ends_nothing(probed) -> None:
    found = first(probed(RULE, ByNumberThenTensor, draw(3, 4), draw(3, 4, seed=5)))
    assert (found.input, found.severity) == ("w", "error")


class NoFormula(Function):
    """Wrong in a way that no single change of forward explains."""

    @staticmethod
    def forward(ctx, x, scale=3.0):
        ctx.save_for_backward(x)
        return scale * x.sin() * torch.exp(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.cos() + 0.3 * x.square()), None


def test_no_cause_is_named_where_none_explains_all(probed) -> None:
    found = first(probed(RULE, NoFormula, draw(4, 5)))
    assert (found.cause, found.cause_text) == (None, "")


class AlmostConstant(Function):
    """The norm counts for 37 hundredths: near none of the usual factors."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / x.norm()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = x.norm()
        return g / n - 0.37 * x * (g * x).sum() / n**3


def test_a_factor_that_is_not_plain_names_nothing(probed) -> None:
    assert first(probed(RULE, AlmostConstant, draw(4, 5))).cause is None


class TwoFaults(Function):
    """The epsilon is left out and one row is wrong as well: the epsilon does not explain that."""

    @staticmethod
    def forward(ctx, x, eps=1e-2):
        return WithoutEpsilon.forward(ctx, x, eps)

    @staticmethod
    def backward(ctx, g):
        found, _ = WithoutEpsilon.backward(ctx, g)
        return torch.cat([found[:1] * 1.5, found[1:]]), None


def test_what_explains_some_elements_only_is_not_named(probed) -> None:
    found = first(probed(RULE, TwoFaults, draw(3, 4)))
    assert found.cause != "argument-left-out"


class Right(Function):
    @staticmethod
    def forward(ctx, x, eps=1e-2):
        ctx.save_for_backward(x)
        ctx.eps = eps
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        r = torch.rsqrt(x.square().mean(-1, keepdim=True) + ctx.eps)
        return g * r - x * r**3 * (g * x).mean(-1, keepdim=True), None


def test_a_right_op_passes(probed) -> None:
    assert probed(RULE, Right, draw(3, 4)).verdict == "pass"


class Huge(Function):
    """An op of more calls than are looked at in two seconds still ends."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        for k in range(400):
            x = x + math.sin(k) * 1e-3 * x.sin()
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 1.2


def test_a_long_forward_ends_without_a_cause(probed) -> None:
    assert first(probed(RULE, Huge, draw(3, 2))).cause is None
