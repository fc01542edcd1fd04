"""Shapes that only backward, or what forward reads of a tensor, tells; and functions that close
over parameters."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradlint.api import check
from gradlint.inputs._infer import infer
from gradlint.inputs.stand_ins import Closure, first_stand_in, stand_in, with_bound_closures
from gradlint.targets.build import from_object


def shapes(function: type[Function]) -> list[tuple[int, ...]]:
    sample = infer(from_object(function), 0)[0]
    assert not any("raises" in note for note in sample.notes), sample.notes
    return [tuple(part.shape) for part in sample.args if isinstance(part, torch.Tensor)]


def codes(function: type[Function], severity: str = "error") -> set[str]:
    report = check(function, select=["GL0", "GL1", "GL2", "GL4", "GL6"], seed=3)
    return {item.code for item in report.findings if item.severity == severity}


class ChannelScale(Function):
    """The gradient of ``weight`` keeps its reduced axes: weight has shape [1, C, 1, 1]."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight + 0 * x.mean(dim=[2, 3], keepdim=True)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad * weight, (grad * x).sum(dim=(0, 2, 3), keepdim=True)


def test_a_gradient_with_kept_axes_tells_the_shape():
    x, weight = shapes(ChannelScale)
    assert weight == (1, x[1], 1, 1)


def test_a_weight_a_row_keeps_its_last_axis():
    class RowScale(Function):
        @staticmethod
        def forward(ctx, x, weights):
            ctx.save_for_backward(x, weights)
            return x * weights

        @staticmethod
        def backward(ctx, grad):
            x, weights = ctx.saved_tensors
            return grad * weights, (grad * x).sum(-1, keepdim=True)

    x, weights = shapes(RowScale)
    assert weights == (x[0], 1)


def test_what_is_compiled_runs_eagerly_while_inputs_are_looked_for():
    compiled = []

    def backend(graph, inputs):
        compiled.append(graph)
        return graph

    fused = torch.compile(lambda x, weight: torch.mm(x, weight), backend=backend)

    class Fused(Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return fused(x, weight)

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            return grad @ weight.mT, x.mT @ grad

    x, weight = shapes(Fused)
    assert x[1] == weight[0]
    assert compiled == []
    Fused.apply(torch.ones(2, 3), torch.ones(3, 4))
    assert len(compiled) == 1


def test_kept_axes_of_as_many_elements_are_a_mistake():
    class NotReshaped(Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x * weight.view(1, -1, 1, 1)

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            by_channel = (grad * x).sum((0, 2, 3), keepdim=True)
            return grad * weight.view(1, -1, 1, 1), by_channel

    assert "GL201" in codes(NotReshaped)


def test_a_gradient_made_by_the_size_of_its_input_is_one_axis():
    class Weighted(Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x * weight

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            return grad * weight, (grad * x).reshape(-1, weight.shape[0]).sum(0)

    x, weight = shapes(Weighted)
    assert weight == x[-1:]


def test_a_loop_backwards_ties_the_axis_that_it_indexes():
    class Recurrence(Function):
        @staticmethod
        def forward(ctx, a, b):
            h, out = torch.zeros_like(b[:, 0]), []
            for t in range(b.shape[1]):
                h = a[:, t] * h + b[:, t]
                out.append(h)
            ctx.save_for_backward(a, torch.stack(out, 1))
            return torch.stack(out, 1)

        @staticmethod
        def backward(ctx, grad):
            a, out = ctx.saved_tensors
            carry, of_a, of_b = torch.zeros_like(grad[:, 0]), torch.zeros_like(a), grad * 0
            for t in range(a.shape[1] - 1, -1, -1):
                carry = carry + grad[:, t]
                of_b[:, t] = carry
                of_a[:, t] = carry * out[:, t - 1] if t else 0
                carry = carry * a[:, t]
            return of_a, of_b

    a, b = shapes(Recurrence)
    assert a == b


def test_forward_may_ask_for_a_square_at_the_rank_that_backward_needs():
    class Chain(Function):
        @staticmethod
        def forward(ctx, emissions, transitions):
            ctx.save_for_backward(emissions, transitions)
            step = emissions[0].unsqueeze(-1) + transitions
            return torch.logsumexp(step, 1) + emissions[1]

        @staticmethod
        def backward(ctx, grad):
            emissions, transitions = ctx.saved_tensors
            step = torch.softmax(emissions[0].unsqueeze(-1) + transitions, 1)
            pairs = step * grad[:, None, :]
            gradient = torch.zeros_like(emissions)
            gradient[0], gradient[1] = pairs.sum(-1), grad
            return gradient, pairs.sum(0)

    emissions, transitions = shapes(Chain)
    assert len(emissions) == 3
    assert transitions == (emissions[-1], emissions[-1])


def test_a_tensor_whose_gradient_is_one_number_is_a_scalar():
    class Bandwidth(Function):
        @staticmethod
        def forward(ctx, x, y, log_scale):
            squares = (x[:, None] - y[None]).square().sum(-1)
            ctx.save_for_backward(squares, log_scale)
            ctx.mark_non_differentiable(squares)
            return squares.detach() * torch.exp(log_scale)

        @staticmethod
        def backward(ctx, grad):
            squares, log_scale = ctx.saved_tensors
            total = (grad * squares * torch.exp(log_scale)).sum()
            return None, None, total.reshape(log_scale.shape)

    assert shapes(Bandwidth)[2] == ()


class Modulus(Function):
    """Real and imaginary part are read by their positions: no other elements are."""

    @staticmethod
    def forward(ctx, x):
        output = (x[..., 0] * x[..., 0] + x[..., 1] * x[..., 1]).sqrt()
        ctx.save_for_backward(x, output)
        return output

    @staticmethod
    def backward(ctx, grad):
        x, output = ctx.saved_tensors
        return x * (grad / output).unsqueeze(-1)


def test_an_axis_read_by_its_positions_has_no_more():
    assert shapes(Modulus)[0][-1] == 2
    report = check(Modulus, order=1, seed=3)
    assert [item.code for item in report.findings if item.severity == "error"] == []


def test_an_axis_whose_elements_are_returned_stays_as_it_is():
    class Crop(Function):
        @staticmethod
        def forward(ctx, x):
            return x * (x[..., 0:1] + x[..., 0, None] + x[..., 1, None]).detach()

        @staticmethod
        def backward(ctx, grad):
            return grad

    assert shapes(Crop)[0][-1] > 2


class Labelled(Function):
    """Takes as many labels as there are rows, and ignores what more it gets."""

    @staticmethod
    def forward(ctx, x, labels):
        picked = [x[row, labels[row] % x.shape[1]] for row in range(x.shape[0])]
        ctx.save_for_backward(labels)
        ctx.shape = x.shape
        return torch.stack(picked).sum()

    @staticmethod
    def backward(ctx, grad):
        (labels,) = ctx.saved_tensors
        out = grad.new_zeros(ctx.shape)
        for row in range(ctx.shape[0]):
            out[row, labels[row] % ctx.shape[1]] = grad
        return out, None


def test_integers_are_as_many_as_are_read():
    x, labels = shapes(Labelled)
    assert labels == x[:1]


def test_integers_that_are_all_read_stay_as_many_as_they_are():
    class Picked(Function):
        @staticmethod
        def forward(ctx, weight, index):
            ctx.save_for_backward(index)
            ctx.rows = weight.shape[0]
            return weight[index]

        @staticmethod
        def backward(ctx, grad):
            (index,) = ctx.saved_tensors
            out = grad.new_zeros(ctx.rows, *grad.shape[index.dim() :])
            return out.index_put((index,), grad, accumulate=True), None

    weight, index = shapes(Picked)
    assert not set(weight) & set(index)


def test_functions_of_torch_linalg_tell_the_domain():
    class Root(Function):
        @staticmethod
        def forward(ctx, a):
            values, vectors = torch.linalg.eigh(a)
            ctx.save_for_backward(vectors)
            return vectors @ torch.diag_embed(values) @ vectors.mT

        @staticmethod
        def backward(ctx, grad):
            return (grad + grad.mT) / 2

    matrix = infer(from_object(Root), 0)[0].args[0].detach()
    assert torch.allclose(matrix, matrix.mT)
    assert bool((torch.linalg.eigvalsh(matrix) > 0).all())


class Trapezoid(Function):
    """(b - a) (f(a) + f(b)) / 2, where f closes over ``params``."""

    factor = 1.0

    @staticmethod
    def forward(ctx, f, a, b, *params):
        ctx.f = f
        ctx.save_for_backward(a, b, *params)
        with torch.no_grad():
            return (b - a) * (f(a) + f(b)) / 2

    @classmethod
    def backward(cls, ctx, grad):
        a, b, *params = ctx.saved_tensors
        with torch.enable_grad():
            a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
            area = (b - a) * (ctx.f(a) + ctx.f(b)) / 2
            of_a, of_b, *rest = torch.autograd.grad(area, (a, b, *params), grad)
        return None, of_a, of_b, *[cls.factor * item for item in rest]


def test_a_function_closes_over_the_parameters_that_backward_differentiates_by():
    sample = infer(from_object(Trapezoid), 0)[0]
    assert isinstance(sample.args[0], Closure)
    assert codes(Trapezoid) == set()


def test_a_wrong_gradient_of_what_a_function_closes_over_is_found():
    class Doubled(Trapezoid):
        factor = 2.0

    # A function that was guessed is in question, too.
    assert "GL401" in codes(Doubled, "warning")


def test_every_call_has_a_closure_of_its_own():
    kept = []
    call = with_bound_closures(lambda f, x, *params: kept.append(f) or f(x))
    x, p, q = torch.zeros(2), torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0])
    at_2, at_4 = (stand_in(torch.full((2,), mean)) for mean in (2.0, 4.0))
    assert torch.equal(call(Closure(2), x, p), at_2)
    assert torch.equal(call(Closure(2), x, q), at_4)
    assert torch.equal(kept[0](x), at_2)


@pytest.mark.parametrize(("function", "shape"), [(stand_in, (5,)), (first_stand_in, (2,))])
def test_what_does_not_broadcast_goes_in_by_its_mean(function, shape):
    x, params = torch.zeros(2, requires_grad=True), torch.ones(5, requires_grad=True)
    value = function(torch.tensor(0.5), x, params)
    assert value.shape == shape
    assert all(g.abs().sum() > 0 for g in torch.autograd.grad(value.sum(), (x, params)))


class Prediction(Function):
    """Mean and spread of a prediction: forward broadcasts a batch of values, and backward, which
    adds the gradients of both, does not."""

    @staticmethod
    def forward(ctx, matrix, middle, values):
        ctx.save_for_backward(matrix, middle, values)
        mean = (matrix.mT @ values.unsqueeze(-1)).squeeze(-1)
        return mean, (matrix.mT * (matrix.mT @ middle)).sum(-1)

    @staticmethod
    def backward(ctx, grad_mean, grad_spread):
        matrix, middle, values = ctx.saved_tensors
        of_mean = values.unsqueeze(-1) @ grad_mean.unsqueeze(-2)
        scaled = matrix * grad_spread.unsqueeze(-2)
        return (
            of_mean + (middle + middle.mT) @ scaled,
            scaled @ matrix.mT,
            (matrix @ grad_mean.unsqueeze(-1)).squeeze(-1),
        )


class LargerValues(Prediction):
    @staticmethod
    def backward(ctx, grad_mean, grad_spread):
        matrix, middle, values = Prediction.backward(ctx, grad_mean, grad_spread)
        return matrix, middle, 2 * values


def test_a_batch_that_only_forward_broadcasts_is_left_out():
    (rows, columns), middle, values = shapes(Prediction)
    assert rows != columns
    assert (middle, values) == ((rows, rows), (rows,))
    assert codes(Prediction) == set()
    assert codes(LargerValues) == {"GL401"}
