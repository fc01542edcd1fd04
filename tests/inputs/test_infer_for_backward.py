"""Inputs on which backward runs too are looked for before backward is blamed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.inputs._infer import infer
from gradlint.targets.build import from_object


def shapes(function: type[Function]) -> list[tuple[int, ...]]:
    sample = infer(from_object(function), 0)[0]
    return [tuple(part.shape) for part in sample.args if isinstance(part, torch.Tensor)]


def notes(function: type[Function]) -> str:
    return "\n".join(infer(from_object(function), 0)[0].notes)


def test_what_backward_unpacks_grad_output_into_is_a_rank():
    class Doubled(Function):
        @staticmethod
        def forward(ctx, x):
            return x.repeat_interleave(2, -1).repeat_interleave(2, -2)

        @staticmethod
        def backward(ctx, grad):
            n, c, h, w = grad.shape
            return grad.reshape(n, c, h // 2, 2, w // 2, 2).sum((3, 5))

    assert [len(shape) for shape in shapes(Doubled)] == [4]


def test_a_batch_is_put_in_front_where_only_backward_needs_it():
    class Convolved(Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return torch.nn.functional.conv1d(x, weight, padding=1)

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            return (
                torch.nn.grad.conv1d_input(x.shape, weight, grad, padding=1),
                torch.nn.grad.conv1d_weight(x, weight.shape, grad, padding=1),
            )

    x, weight = shapes(Convolved)
    assert len(x) == len(set(x)) == 3
    assert x[1] == weight[1]


def test_inputs_that_forward_splits_are_as_large_as_their_gradients():
    class Gated(Function):
        @staticmethod
        def forward(ctx, from_x, from_h, hidden):
            r_x, z_x, n_x = from_x.chunk(3, -1)
            r_h, z_h, n_h = from_h.chunk(3, -1)
            r, z = torch.sigmoid(r_x + r_h), torch.sigmoid(z_x + z_h)
            n = torch.tanh(n_x + r * n_h)
            ctx.save_for_backward(r, z, n, n_h, hidden)
            return (1 - z) * n + z * hidden

        @staticmethod
        def backward(ctx, grad):
            r, z, n, n_h, hidden = ctx.saved_tensors
            d_n = grad * (1 - z) * (1 - n * n)
            d_z = grad * (hidden - n) * z * (1 - z)
            d_r = d_n * n_h * r * (1 - r)
            return torch.cat([d_r, d_z, d_n], -1), torch.cat([d_r, d_z, d_n * r], -1), grad * z

    from_x, from_h, hidden = shapes(Gated)
    assert from_x == from_h == (*hidden[:-1], 3 * hidden[-1])
    assert hidden[-1] > 1


def test_equal_shapes_are_taken_where_they_are_as_likely():
    class Scanned(Function):
        @staticmethod
        def forward(ctx, a, x):
            steps = [torch.zeros_like(x[0])]
            for step in range(x.shape[0]):
                steps.append(a[step] * steps[-1] + x[step])
            y = torch.stack(steps[1:])
            ctx.save_for_backward(a, y)
            return y

        @staticmethod
        def backward(ctx, grad):
            a, y = ctx.saved_tensors
            grad_a, grad_x, carry = torch.zeros_like(y), torch.zeros_like(y), 0.0
            for step in reversed(range(len(y))):
                carry = carry + grad[step]
                grad_x[step] = carry
                if step:
                    grad_a[step] = carry * y[step - 1]
                carry = carry * a[step]
            return grad_a, grad_x

    a, x = shapes(Scanned)
    assert a == x


def test_but_not_to_hide_a_gradient_that_is_reduced_along_another_axis():
    class Scaled(Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x * weight

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            return grad * weight, (grad * x).sum(-1)

    assert "backward raises" in notes(Scaled)


def test_a_gradient_that_repeats_what_it_is_for_stays_wrong():
    class Repeated(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return torch.cat([grad, grad], -1)

    assert "backward raises" in notes(Repeated)


def test_what_is_saved_is_a_tensor():
    class Clipped(Function):
        @staticmethod
        def forward(ctx, x, high: float):
            ctx.save_for_backward(x, high)
            return torch.where(x > high, high, x)

        @staticmethod
        def backward(ctx, grad):
            x, high = ctx.saved_tensors
            return grad * (x <= high), (grad * (x > high)).sum_to_size(high.shape)

    assert len(shapes(Clipped)) == 2


def test_equations_tell_ranks():
    class Rebuilt(Function):
        @staticmethod
        def forward(ctx, core, left):
            ctx.save_for_backward(core, left)
            return torch.einsum("i j k l, i r -> r j k l", core, left)

        @staticmethod
        def backward(ctx, grad):
            core, left = ctx.saved_tensors
            return (
                torch.einsum("rjkl,ir->ijkl", grad, left),
                torch.einsum("ijkl,rjkl->ir", core, grad),
            )

    core, left = shapes(Rebuilt)
    assert [len(core), len(left)] == [4, 2]
    assert left[0] == core[0]


def test_an_equation_of_backward_alone_tells_a_rank_too():
    class Weighted(Function):
        @staticmethod
        def forward(ctx, table, weight):
            ctx.save_for_backward(table, weight)
            return table * weight

        @staticmethod
        def backward(ctx, grad):
            table, weight = (part.clone() for part in ctx.saved_tensors)
            return grad * weight, torch.einsum("kvj,kvj->j", grad, table)

    assert [len(shape) for shape in shapes(Weighted)] == [3, 1]


def test_an_axis_may_be_a_product_of_others():
    class Blocks(Function):
        @staticmethod
        def forward(ctx, x, weight):
            _, blocks, size = weight.shape
            x = x.reshape(*x.shape[:-1], blocks, size)
            ctx.save_for_backward(x, weight)
            return torch.einsum("...nb,mnb->...mb", x, weight).flatten(-2)

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            grad = grad.unflatten(-1, (len(weight), -1))
            grad_x = torch.einsum("...mb,mnb->...nb", grad, weight).flatten(-2)
            return grad_x, torch.einsum("...mb,...nb->mnb", grad, x)

    x, weight = shapes(Blocks)
    assert x[-1] == weight[1] * weight[2]


def test_a_start_index_begins_at_zero():
    class Sharded(Function):
        @staticmethod
        def forward(ctx, table, vocab_start_index: int):
            ctx.start = vocab_start_index
            return table.roll(vocab_start_index, 0)

        @staticmethod
        def backward(ctx, grad):
            return grad.roll(-ctx.start, 0), None

    assert infer(from_object(Sharded), 0)[0].args[1] == 0


def test_nor_one_that_fits_where_others_have_more_axes():
    class Distances(Function):
        @staticmethod
        def forward(ctx, x, y):
            apart = x[:, None] - y[None]
            ctx.save_for_backward(apart)
            return apart.pow(2).sum(-1)

        @staticmethod
        def backward(ctx, grad):
            (apart,) = ctx.saved_tensors
            each = 2 * grad[..., None] * apart
            return each.sum(2), -each.sum(0)

    assert "backward raises" in notes(Distances)


class OneState(Function):
    """A recurrence over the columns of x, whose state before the first is broadcast."""

    @staticmethod
    def forward(ctx, x, a, before):
        assert x.dim() == 2
        assert a.numel() == 1
        columns = [before]
        for t in range(x.shape[1]):
            columns.append(a * columns[-1] + x[:, t])
        ctx.save_for_backward(a, *columns)
        return torch.stack(columns[1:], 1)

    @staticmethod
    def backward(ctx, grad):
        a, *columns = ctx.saved_tensors
        s, grad_a, grad_x = torch.zeros_like(columns[0]), torch.zeros_like(a), []
        for t in reversed(range(grad.shape[1])):
            s = grad[:, t] + a * s
            grad_x.insert(0, s)
            grad_a = grad_a + (s * columns[t]).sum()
        return torch.stack(grad_x, 1), grad_a, a * s


def test_an_axis_that_only_broadcasting_explains_is_left_out():
    x, a, before = shapes(OneState)
    assert (len(x), a, before) == (2, (1,), x[:1])
    assert "backward raises" not in notes(OneState)


class Energies(Function):
    """One number for each bond, with constants of its own; forward takes rows of these too."""

    @staticmethod
    def forward(ctx, x, pairs, k):
        d = x[pairs[:, 0]] - x[pairs[:, 1]]
        ctx.save_for_backward(x, pairs, k, d)
        return k * d.square().sum(-1)

    @staticmethod
    def backward(ctx, grad):
        x, pairs, k, d = ctx.saved_tensors
        f = (2 * grad * k).unsqueeze(-1) * d
        grad_x = torch.zeros_like(x).index_add(0, pairs[:, 0], f).index_add(0, pairs[:, 1], -f)
        return grad_x, None, grad * d.square().sum(-1)


def test_what_a_batch_of_parameters_breaks_gets_none():
    x, pairs, k = shapes(Energies)
    assert (len(x), len(pairs), k) == (2, 2, pairs[:1])


class Power(Function):
    """x to the power of one number."""

    @staticmethod
    def forward(ctx, x, q):
        ctx.save_for_backward(x, q)
        return x.exp() ** q

    @staticmethod
    def backward(ctx, grad):
        x, q = ctx.saved_tensors
        return grad * q * x.exp() ** q, (grad * x * x.exp() ** q).sum()


def test_what_a_gradient_is_reduced_to_is_the_shape_where_nothing_else_tells():
    x, q = shapes(Power)
    assert (len(x), q) == (2, ())


class Edges(Function):
    """Everything that setup_context gets is saved: backward unpacks what forward only indexes."""

    @staticmethod
    def forward(x, edge_index, weight):
        assert weight.shape == edge_index.shape[1:]
        return (weight * (x[edge_index[0]] - x[edge_index[1]]).square().sum(-1)).sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, edge_index, weight = ctx.saved_tensors
        i, j = edge_index
        d = x[i] - x[j]
        f = 2 * grad * weight.unsqueeze(-1) * d
        grad_x = torch.zeros_like(x).index_add(0, i, f).index_add(0, j, -f)
        return grad_x, None, grad * d.square().sum(-1)


def test_all_inputs_may_be_saved_at_once():
    _, edge_index, weight = shapes(Edges)
    assert (edge_index[0], weight) == (2, edge_index[1:])


def wave(ctx, image, coils):
    ctx.save_for_backward(image, coils)
    return torch.fft.fft(coils * image)


def wave_backward(ctx, grad):
    image, coils = ctx.saved_tensors
    inner = torch.fft.ifft(grad, norm="forward")
    return inner * coils.conj(), inner * image.conj()


def interference(ctx, a, phase):
    turn = torch.exp(1j * phase)
    ctx.save_for_backward(a, turn)
    return a * turn


def interference_backward(ctx, grad):
    a, turn = ctx.saved_tensors
    inner = grad * turn.conj()
    return inner, (inner * (1j * a).conj()).real


@pytest.mark.parametrize(
    ("forward", "backward", "expected"),
    [
        (wave, wave_backward, [True, True]),
        (interference, interference_backward, [True, False]),
    ],
)
def test_inputs_are_complex_where_their_gradients_are(forward, backward, expected):
    names = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    sample = infer(from_object(type("Op", (Function,), names)), 0)[0]
    assert [part.is_complex() for part in sample.args] == expected


def test_inputs_documented_as_real_stay_real():
    class Spectrum(Function):
        """Full spectrum of a real signal, and a backward that forgets it."""

        @staticmethod
        def forward(ctx, x):
            return torch.fft.fft(x)

        @staticmethod
        def backward(ctx, grad):
            return torch.fft.ifft(grad, norm="forward")

    assert not infer(from_object(Spectrum), 0)[0].args[0].is_complex()
    assert "input_is_complex" in notes(Spectrum)


def test_no_backward_reads_what_forward_freed_at_guessed_arguments():
    """Its end would be that of the process."""

    class Recomputed(Function):
        @staticmethod
        def forward(ctx, x, inverse, keep_input):
            ctx.x, ctx.inverse, ctx.keep_input = x, inverse, keep_input
            y = torch.tanh(x)
            if not keep_input:
                x.untyped_storage().resize_(0)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * (1 - torch.tanh(ctx.x) ** 2), None, None

    x, _, keep_input = infer(from_object(Recomputed), 0)[0].args
    assert keep_input is True
    assert x.untyped_storage().nbytes() == x.numel() * 8


class Parts(Function):
    """A product with three matrices below each other, which are as large as the first."""

    @staticmethod
    def forward(ctx, x, a, b, c):
        kernel = torch.cat((a, b, c))
        ctx.save_for_backward(x, kernel)
        ctx.rows = len(a)
        return x @ kernel

    @staticmethod
    def backward(ctx, grad):
        x, kernel = ctx.saved_tensors
        rows, of_kernel = ctx.rows, x.mT @ grad
        parts = (of_kernel[k * rows : (k + 1) * rows] for k in range(3))
        return grad @ kernel.mT, *parts


class PartsExchanged(Parts):
    @staticmethod
    def backward(ctx, grad):
        of_x, of_a, of_b, of_c = Parts.backward(ctx, grad)
        return of_x, of_a, of_c, of_b


def test_parts_are_of_the_shape_that_backward_gives_them():
    x, a, b, c = shapes(Parts)
    assert a == b == c
    assert x[1] == 3 * a[0]
    flags = {"seed": 0, "order": 1, "select": ["GL2", "GL401"]}
    assert gradlint.check(Parts, **flags).targets[0].verdict == "pass"
    found = gradlint.check(PartsExchanged, **flags).targets[0].findings
    assert {(item.code, item.input) for item in found} == {("GL401", "b"), ("GL401", "c")}


class InUnits(torch.nn.Module):
    """Counts units of a scale, which autograd has no derivative for."""

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return x.sin() * (1.0 // scale) + x


def test_a_scale_without_a_derivative_requires_no_gradient():
    (sample, *_) = infer(from_object(InUnits()), 0)
    x, scale = sample.args
    assert x.requires_grad
    assert not scale.requires_grad


class Undifferentiable(torch.nn.Module):
    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return (x // 2.0) * scale


def test_an_input_keeps_its_gradient_where_leaving_it_out_does_not_help():
    (sample, *_) = infer(from_object(Undifferentiable()), 0)
    x, scale = sample.args
    assert scale.requires_grad
    assert not x.requires_grad


class Update(torch.autograd.Function):
    """A measurement update.

    mean: (n,) state, cov: (n, n) of it, row: (n,) measurement. Nothing is said of the other two,
    which forward broadcasts.
    """

    @staticmethod
    def forward(ctx, mean, cov, row, noise, z):
        at = cov @ row
        total = row @ at + noise
        gain = at / total
        left = z - row @ mean
        ctx.save_for_backward(mean, cov, row, at, total, gain, left)
        return mean + gain * left

    @staticmethod
    def backward(ctx, g):
        mean, cov, row, at, total, gain, left = ctx.saved_tensors
        of_gain, of_left = g * left, g @ gain
        of_total = -(of_gain @ at) / total**2
        of_at = of_gain / total + of_total * row
        of_row = of_total * at + cov.mT @ of_at - of_left * mean
        return g - of_left * row, torch.outer(of_at, row), of_row, of_total, of_left


class Refuses(Update):
    """Backward raises for whatever it is given."""

    @staticmethod
    def backward(ctx, g):
        raise RuntimeError("shapes of tensors do not fit together")


def test_what_forward_broadcast_has_fewer_axes_where_backward_raises() -> None:
    mean, _, row, noise, z = infer(from_object(Update), 0)[0].args
    assert mean.shape == row.shape
    assert (noise.dim(), z.dim()) == (0, 0)
    assert any("backward raises" in note for note in infer(from_object(Refuses), 0)[0].notes)


class OnePerChannel(Function):
    """One slope for each channel: backward has cases for two axes and for four."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return torch.where(x > 0, x, weight.view(1, -1, *[1] * (x.dim() - 2)) * x)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        to_weight = torch.where(x > 0, torch.zeros_like(x), grad * x)
        to_weight = to_weight.sum((0, 2, 3)) if x.dim() == 4 else to_weight.sum(0)
        slope = weight.view(1, -1, *[1] * (x.dim() - 2))
        return torch.where(x > 0, grad, slope * grad), to_weight


class NotSummed(Function):
    """Nothing in the code names four axes: the sum over the last two is missing."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight.view(1, -1, *[1] * (x.dim() - 2))

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad * weight.view(1, -1, *[1] * (x.dim() - 2)), (grad * x).sum(0)


def test_axes_for_which_the_code_has_a_case():
    x, weight = shapes(OnePerChannel)
    assert len(x) == 4
    assert weight == (x[1],)
    assert gradlint.check(OnePerChannel, seed=0, order=1, select=["GL1", "GL2", "GL4"]).ok


def test_a_missing_sum_is_found_at_more_axes():
    x, weight = shapes(NotSummed)
    assert len(x) > 2
    assert weight == (x[1],)
    report = gradlint.check(NotSummed, seed=0, order=1, select=["GL1", "GL2", "GL4"])
    assert [(item.code, item.input) for item in report.findings] == [("GL201", "weight")]


def test_a_batch_is_put_in_front_of_an_axis_that_others_have_too():
    class Weighted(Function):
        @staticmethod
        def forward(ctx, x, weight, bias):
            ctx.save_for_backward(x, weight)
            return weight[:, 0, None] * x + weight[:, 1, None] * x.roll(1, -1) + bias[:, None]

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            of_x = weight[:, 0, None] * grad + weight[:, 1, None] * grad.roll(-1, -1)
            of_weight = torch.stack([(grad * x.roll(k, -1)).sum((0, 2)) for k in range(2)], 1)
            return of_x, of_weight, grad.sum((0, 2))

    x, weight, bias = shapes(Weighted)
    assert len(x) == 3
    assert x[1:2] == weight[:1] == bias


class Bonds(Function):
    @staticmethod
    def forward(ctx, charge, distance, bonds):
        ctx.save_for_backward(charge, distance, bonds)
        return (charge[bonds[0]] * charge[bonds[1]] / distance).sum()

    @staticmethod
    def backward(ctx, grad):
        q, r, (i, j) = ctx.saved_tensors
        of_q = torch.zeros_like(q).index_add(0, i, q[j] / r).index_add(0, j, q[i] / r)
        return grad * of_q, -grad * q[i] * q[j] / r**2, None


class LostBond(Bonds):
    @staticmethod
    def backward(ctx, grad):
        q, r, (i, j) = ctx.saved_tensors
        of_q = torch.zeros_like(q).index_add(0, i, q[j] / r)
        return grad * of_q, -grad * q[i] * q[j] / r**2, None


def test_a_saved_tensor_has_as_many_slices_as_backward_unpacks():
    *_, bonds = shapes(Bonds)
    assert len(bonds) == 2
    assert bonds[0] == 2
    codes = ["GL004", "GL1", "GL2", "GL4", "GL706"]
    (right,) = gradlint.check(Bonds, seed=0, order=1, select=codes).targets
    assert [item.code for item in right.findings if item.severity != "info"] == []
    (wrong,) = gradlint.check(LostBond, seed=0, order=1, select=codes).targets
    assert ("GL401", "charge") in [(item.code, item.input) for item in wrong.findings]


class ColumnsCounted(torch.autograd.Function):
    """Backward takes the columns of the second factor for its rows."""

    @staticmethod
    def forward(ctx, a, b):
        if a.shape[1] != b.shape[1]:
            raise ValueError("both factors need the same number of columns")
        ctx.save_for_backward(a, b)
        return (a.unsqueeze(1) * b.unsqueeze(0)).reshape(-1, a.shape[1])

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        rows = grad.reshape(a.shape[0], b.shape[1], -1)
        return (rows * b.unsqueeze(0)).sum(1), (rows * a.unsqueeze(1)).sum(0)


class ThreeAtATime(torch.autograd.Function):
    """Backward is for vectors of three numbers, which forward never says."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square().sum(-1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2.0 * (grad.unsqueeze(-1) * x).reshape(-1, 3).view(*grad.shape, 3)


def test_no_size_makes_up_for_a_wrong_view_of_backward():
    (sample, *_) = infer(from_object(ColumnsCounted))
    a, b = sample.args
    assert [a.shape, b.shape] == [(3, 4), (5, 4)]
    assert any("backward raises" in note for note in sample.notes)


def test_a_small_size_that_backward_asks_for_is_given():
    (sample, *_) = infer(from_object(ThreeAtATime))
    assert sample.args[0].shape[-1] == 3
    assert not any("backward raises" in note for note in sample.notes)


def test_what_forward_only_saves_has_no_axes():
    class Soft(Function):
        @staticmethod
        def forward(ctx, x, k, t):
            ctx.save_for_backward(x, k, t)
            return x.tanh()

        @staticmethod
        def backward(ctx, grad):
            x, k, t = ctx.saved_tensors
            return grad * (1 - x.tanh() ** 2) * (k * t) / (k * t), None, None

    sample = infer(from_object(Soft), 0)[0]
    assert [tuple(part.shape) for part in sample.args[1:]] == [(), ()]


def test_what_forward_uses_keeps_the_axes_that_it_needs():
    class Scaled(Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.save_for_backward(k)
            return x * k[:, None]

        @staticmethod
        def backward(ctx, grad):
            (k,) = ctx.saved_tensors
            return grad * k[:, None], None

    assert [len(shape) > 0 for shape in shapes(Scaled)] == [True, True]


def test_an_attribute_without_a_gradient_is_rather_a_number():
    class Mixed(Function):
        @staticmethod
        def forward(ctx, x, phi):
            ctx.save_for_backward(x)
            ctx.phi = phi
            ratio = x.square().sum(-1, keepdim=True)
            return x * (phi * (1 / (1 + ratio)) + (1 - phi))

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            phi, ratio = ctx.phi, x.square().sum(-1, keepdim=True)
            inner = (grad * x).sum(-1, keepdim=True)
            slope = -2 * phi * inner / (1 + ratio) ** 2
            return grad * (phi / (1 + ratio) + 1 - phi) + slope * x, None

    sample = infer(from_object(Mixed), 0)[0]
    assert isinstance(sample.args[1], float)


def test_an_attribute_that_is_indexed_is_a_tensor():
    class Picked(Function):
        @staticmethod
        def forward(ctx, x, keep):
            ctx.keep = keep
            return x * keep[:, None]

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.keep[:, None], None

    assert [len(shape) > 0 for shape in shapes(Picked)] == [True, True]


class FixedFeedback(Function):
    """The gradient of the input goes back through a matrix of its own."""

    @staticmethod
    def forward(ctx, input, weight, weight_backward, bias):
        ctx.save_for_backward(input, weight, weight_backward, bias)
        return torch.conv2d(input, weight, bias)

    @staticmethod
    def backward(ctx, g):
        input, _, weight_backward, _ = ctx.saved_tensors
        into = torch.nn.grad.conv2d_input(input.shape, weight_backward, g)
        onto = torch.nn.grad.conv2d_weight(input, weight_backward.shape, g)
        return into, onto, None, g.sum((0, 2, 3))


def test_what_forward_only_saves_has_the_shape_of_its_namesake():
    _, weight, weight_backward, bias = infer(from_object(FixedFeedback), 0)[0].args
    assert weight.dim() == 4
    assert weight_backward.shape == weight.shape
    assert bias.shape == weight.shape[:1]


class ScaledByASavedNumber(Function):
    """Broadcasts whatever its shape: it stays a number."""

    @staticmethod
    def forward(ctx, input, input_scale):
        ctx.save_for_backward(input, input_scale)
        return input.sin()

    @staticmethod
    def backward(ctx, g):
        input, input_scale = ctx.saved_tensors
        return g * input.cos() * (input_scale > -9), None


def test_what_backward_takes_as_a_number_stays_one():
    assert infer(from_object(ScaledByASavedNumber), 0)[0].args[1].dim() == 0


class Springs(Function):
    """The energy of springs of one length, between pairs of points."""

    @staticmethod
    def forward(ctx, points, pairs, k, r0):
        d = points[pairs[:, 0]] - points[pairs[:, 1]]
        ctx.save_for_backward(points, pairs)
        ctx.constants = k, r0
        return (k * (d.norm(dim=1) - r0) ** 2).sum()

    @staticmethod
    def backward(ctx, grad):
        points, pairs = ctx.saved_tensors
        k, r0 = ctx.constants
        i, j = pairs.unbind(1)
        d = points[i] - points[j]
        r = d.norm(dim=1, keepdim=True)
        force = grad * 2 * k * (r - r0) * d / r
        to_points = torch.zeros_like(points).index_add(0, i, force).index_add(0, j, -force)
        return to_points, None, None, None


class Springless(Springs):
    """Forgets that a spring has a length."""

    @staticmethod
    def backward(ctx, grad):
        ctx.constants = ctx.constants[0], 0.0
        return Springs.backward(ctx, grad)


def test_constants_that_are_kept_as_a_tuple_are_numbers() -> None:
    *_, k, r0 = infer(from_object(Springs), 0)[0].args
    assert {type(k), type(r0)} <= {int, float}


@pytest.mark.parametrize(("op", "wrong"), [(Springs, []), (Springless, ["points"])])
def test_gradients_beside_such_constants_are_judged(op, wrong) -> None:
    (report,) = gradlint.check(op, seed=0, order=1, select=["GL0", "GL401"]).targets
    assert [f.input for f in report.findings if f.severity in ("error", "warning")] == wrong


def test_a_tensor_that_is_kept_in_a_tuple_stays_one() -> None:
    class Masked(Function):
        @staticmethod
        def forward(ctx, x, chosen, scale):
            ctx.others = chosen, scale
            return x[chosen] * scale

        @staticmethod
        def backward(ctx, g):
            chosen, scale = ctx.others
            return torch.zeros(4, dtype=g.dtype).index_add(0, chosen, g * scale), None, None

    _, chosen, scale = infer(from_object(Masked), 0)[0].args
    assert chosen.dtype == torch.int64
    assert isinstance(scale, float)


class Biased(Function):
    """Adds one number for each pair of places to all scores of a head."""

    @staticmethod
    def forward(ctx, scores, table, index):
        ctx.save_for_backward(index)
        ctx.number = table.shape[0]
        return scores + table[index].permute(2, 0, 1)

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        rows = g.sum(0).permute(1, 2, 0).flatten(0, 1)
        to_table = torch.zeros(ctx.number, rows.shape[1], dtype=g.dtype)
        return g, to_table.index_add(0, index.flatten(), rows), None


class BiasedAcross(Biased):
    """Gives each pair the gradient of the pair the other way round."""

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        rows = g.sum(0).permute(2, 1, 0).flatten(0, 1)
        to_table = torch.zeros(ctx.number, rows.shape[1], dtype=g.dtype)
        return g, to_table.index_add(0, index.flatten(), rows), None


class TooManyAxes(Function):
    """Backward wants an axis that no input can give it: forward takes the mean of them all."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square().mean()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g.permute(0) * 2 * x / x.numel()


def test_the_axes_that_backward_permutes_are_those_of_the_output() -> None:
    scores, table, index = shapes(Biased)
    assert len(scores) == 4
    assert table[1] == scores[1]
    assert index == scores[2:]


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (Biased, []),
        (BiasedAcross, [("GL401", "table")]),
        (TooManyAxes, [("GL004", None)]),
    ],
)
def test_what_backward_permutes_is_judged(op, expected) -> None:
    (report,) = gradlint.check(op, seed=0, order=1, select=["GL0", "GL401"]).targets
    found = [(f.code, f.input) for f in report.findings if f.severity in ("error", "warning")]
    assert found == expected


class Rotated(Function):
    """Pairs that lie half an axis apart, turned: as many elements as pairs have."""

    @staticmethod
    def forward(ctx, x, cos, sin):
        ctx.save_for_backward(cos, sin)
        _batch, _heads, _length, _width = x.shape
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    @staticmethod
    def backward(ctx, grad):
        cos, sin = ctx.saved_tensors
        a, b = (grad * sin).chunk(2, -1)
        return grad * cos + torch.cat((b, -a), -1), None, None


def test_exchanged_halves_are_of_one_size():
    x, cos, sin = shapes(Rotated)
    assert x[-1] % 2 == 0
    assert cos[-1] == sin[-1] == x[-1]


def test_a_wrong_sign_between_exchanged_halves_is_found_at_an_even_size():
    class Unturned(Rotated):
        @staticmethod
        def backward(ctx, grad):
            cos, sin = ctx.saved_tensors
            a, b = (grad * sin).chunk(2, -1)
            return grad * cos + torch.cat((-b, a), -1), None, None

    assert shapes(Unturned)[0][-1] % 2 == 0
    found = gradlint.check(Unturned, seed=0, select="GL401")
    (finding,) = found.targets[0].findings
    assert (finding.code, finding.severity, finding.cause) == ("GL401", "error", "sign")


def test_halves_that_backward_cuts_as_forward_does_may_differ_by_one():
    class Glued(Rotated):
        @staticmethod
        def backward(ctx, grad):
            cos, sin = ctx.saved_tensors
            back = grad * sin
            few = back.shape[-1] // 2
            return grad * cos + torch.cat((back[..., few:], -back[..., :few]), -1), None, None

    assert shapes(Glued)[0][-1] % 2 == 1


class BatchScale(Function):
    """Rows over the root of their mean square, that of the batch or one that is kept."""

    @staticmethod
    def forward(ctx, x, kept, training):
        if training:
            square = x.square().mean(0)
            kept.mul_(0.9).add_(square, alpha=0.1)
        else:
            square = kept.clone()
        ctx.training = training
        ctx.save_for_backward(x, square.rsqrt())
        return x * square.rsqrt()

    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        of_x = grad * scale
        if ctx.training:
            of_x = of_x - x * scale**3 * (grad * x).mean(0)
        return of_x, None, None


class AlwaysTraining(BatchScale):
    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        return grad * scale - x * scale**3 * (grad * x).mean(0), None, None


def test_what_a_batch_is_written_into_can_be_used_in_its_place():
    found = infer(from_object(BatchScale), 0)
    x, kept, _ = found[0].args
    assert kept.shape == x.shape[1:]
    assert bool((kept > 0).all())
    assert {sample.args[2] for sample in found} == {True, False}


@pytest.mark.parametrize(("op", "codes"), [(BatchScale, set()), (AlwaysTraining, {"GL401"})])
def test_either_value_of_an_option_is_judged(op, codes):
    found = gradlint.check(op, select="GL401", seed=0).targets[0].findings
    assert {item.code for item in found} == codes


class OwnScale(BatchScale):
    """A number for each row and column: it keeps its axes, which forward needs for either value."""

    @staticmethod
    def forward(ctx, x, kept, training):
        ctx.training = False
        ctx.save_for_backward(x, kept)
        return x * kept[:, : x.shape[1]] + (1.0 if training else 2.0)

    @staticmethod
    def backward(ctx, grad):
        _, kept = ctx.saved_tensors
        return grad * kept[:, : grad.shape[1]], None, None


def test_axes_that_either_value_takes_are_kept():
    assert infer(from_object(OwnScale), 0)[0].args[1].dim() == 2


@torch.library.custom_op("gl_wrapped::gained", mutates_args=())
def _gained(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    return x * gain.exp()


def _gained_backward(ctx, grad):
    x, gain = ctx.saved_tensors
    return grad * gain.exp(), (grad * x).sum() * gain.exp()


_gained.register_fake(lambda x, gain: torch.empty_like(x))
_gained.register_autograd(
    _gained_backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs)
)


def by_name(x, gain):
    return torch.ops.gl_wrapped.gained(x, gain)


def by_object(x, gain):
    return _gained(x, gain)


@pytest.mark.parametrize("function", [by_name, by_object])
def test_backward_behind_a_custom_operator_says_what_is_one_number(function: Any) -> None:
    x, gain = infer(from_object(function), seed=0)[0].args
    assert (x.dim() > 0, gain.dim()) == (True, 0)


@torch.library.custom_op("gl_wrapped::spaced", mutates_args=())
def _spaced(x: torch.Tensor, offsets: torch.Tensor, spacing: list[float]) -> torch.Tensor:
    """Rows of each segment of x (L, 3), offsets (B + 1,), added and divided by the spacing."""
    owner = torch.searchsorted(offsets[1:].contiguous(), torch.arange(len(x)), right=True)
    added = x.new_zeros(len(offsets) - 1, 3).index_add(0, owner, x)
    return added / x.new_tensor(spacing)


_spaced.register_fake(lambda x, offsets, spacing: x.new_empty(len(offsets) - 1, 3))


def _spaced_backward(ctx, grad):
    owner = torch.searchsorted(ctx.offsets[1:].contiguous(), torch.arange(ctx.length), right=True)
    return (grad / grad.new_tensor(ctx.spacing))[owner], None, None


def _keep_spaced(ctx, inputs, output):
    ctx.length, ctx.offsets, ctx.spacing = len(inputs[0]), *inputs[1:]


_spaced.register_autograd(_spaced_backward, setup_context=_keep_spaced)


def test_bounds_of_segments_are_integers_and_a_list_holds_numbers() -> None:
    x, offsets, spacing = infer(from_object(_spaced), seed=0)[0].args
    assert (offsets.dtype, int(offsets[0]), int(offsets[-1])) == (torch.int64, 0, len(x))
    assert [type(value) for value in spacing] == [float, float, float]
