"""What error texts say about the plan that raised them."""

from __future__ import annotations

import pytest
import torch

from gradlint.inputs._attempt import Failure
from gradlint.inputs._frames import FailedAttempt
from gradlint.inputs._gather import gather
from gradlint.inputs._infer import infer
from gradlint.inputs._moves import made_wide, without_batch
from gradlint.inputs._plan import Plan, TensorGuess, ValueGuess, axes
from gradlint.inputs._repairs import repairs, size_pairs
from gradlint.targets.build import from_object

A, B, C = 5, 7, 6


def plan(first: int = 2, second: int = 2, **other: object) -> Plan:
    guesses = (TensorGuess(axes("x", first)), TensorGuess(axes("y", second)))
    extra = tuple(ValueGuess(value, type(value).__name__) for value in other.values())
    return Plan(("x", "y", *other), (*guesses, *extra))


def first_shapes(start: Plan, kind: str, text: str, count: int = 4) -> list[list[tuple[int, ...]]]:
    found = []
    for other in repairs(FailedAttempt(start, Failure("forward", kind, text))):
        sizes = other.sizes()
        found.append([tuple(sizes[a] for a in guess.axes) for _, guess in other.tensors()])
    return found[:count]


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("The size of tensor a (5) must match the size of tensor b (7) at dimension 1", (5, 7)),
        ("mat1 and mat2 shapes cannot be multiplied (5x7 and 6x11)", (7, 6)),
        ("weight of size [9, 6, 3, 2], expected input[5, 7, 6, 11] to have 6 channels, but got 7 "
         "channels instead", (6, 7)),
        ("Expected size 5 but got size 6 for tensor number 1 in the list.", (5, 6)),
        ("operands could not be broadcast together with shapes (5,7) (6,11)", (7, 11)),
        ("expected bias to be 1-dimensional with 9 elements, but got bias of size [17]", (9, 17)),
        ("expected grid to have size 2 in last dimension, but got grid with sizes [5, 9]", (9, 2)),
    ],
)  # fmt: skip
def test_sizes_that_should_agree(text, pair):
    assert set(size_pairs(text)[0]) == set(pair)


def test_mismatched_matrices_are_tied():
    text = "mat1 and mat2 shapes cannot be multiplied (5x7 and 6x11)"
    assert first_shapes(plan(), "RuntimeError", text)[0] == [(A, B), (B, C)]


def test_lengths_that_are_asked_for_of_parts_of_axes_too():
    text = "linalg.cross: inputs dimension -1 must have length 3. Got 10 and 7"
    assert first_shapes(plan(), "RuntimeError", text)[0] == [(A, 3), (B, 4)]


def test_a_size_of_no_axis_is_taken_over():
    text = "mat1 and mat2 shapes cannot be multiplied (5x7 and 20x11)"
    assert first_shapes(plan(), "RuntimeError", text)[0][0] == (5, 20)


def test_ranks_in_words():
    text = "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [5, 7]"
    shapes = first_shapes(plan(), "RuntimeError", text)
    assert [len(found[0]) for found in shapes[:2]] == [4, 3]
    assert [len(found[1]) for found in shapes[:2]] == [2, 2]


def test_a_gradient_of_another_rank_shapes_the_input():
    text = (
        "Function OpBackward returned an invalid gradient at index 1 - got [7] but expected shape "
        "compatible with [11, 6]"
    )
    assert first_shapes(plan(), "RuntimeError", text)[0] == [(A, B), (B,)]


def test_a_transposed_gradient_does_not():
    text = (
        "Function OpBackward returned an invalid gradient at index 1 - got [11, 6] but expected "
        "shape compatible with [6, 11]"
    )
    start = plan()
    for other in repairs(FailedAttempt(start, Failure("backward", "RuntimeError", text))):
        assert (
            len(other.guess("y").axes) != 2 or other.squares() or other.guess("y").axes[0] != "y.1"
        )


def test_views_are_solved_for_the_size_that_differs():
    start = plan(1, 3)
    sizes = start.sizes()
    x, (y, *rest) = sizes["x.0"], (sizes[axis] for axis in axes("y", 3))
    inner = rest[0] * rest[1]
    text = f"shape '[{x}, 1, {inner}]' is invalid for input of size {y * inner}"
    first = next(repairs(FailedAttempt(start, Failure("forward", "RuntimeError", text))))
    assert first.guess("y").axes[0] == first.guess("x").axes[0]


def test_integers_where_the_op_wants_them():
    start = plan()
    text = "gather(): Expected dtype int32/int64 for index"
    dtypes = [
        other.guess("y").dtype
        for other in repairs(FailedAttempt(start, Failure("forward", "X", text)))
    ]
    assert "int" in dtypes


def test_index_ranges_shrink():
    guesses = (TensorGuess(axes("x", 2)), TensorGuess(axes("y", 1), "int", grad=False))
    start = Plan(("x", "y"), guesses)
    text = "index 4 is out of bounds for dimension 0 with size 3"
    highs = [
        other.guess("y").high
        for other in repairs(FailedAttempt(start, Failure("forward", "", text)))
    ]
    assert 3 in highs


def test_axes_out_of_range():
    text = "Dimension out of range (expected to be in range of [-2, 1], but got 2)"
    start = plan(dim=2)
    found = list(repairs(FailedAttempt(start, Failure("forward", "IndexError", text))))
    assert any(other.guess("dim") == ValueGuess(-1, "int") for other in found)
    assert any(len(other.guess("x").axes) == 3 for other in found)


def test_float32_is_tried_when_types_clash():
    text = "expected m1 and m2 to have the same dtype, but got: double != float"
    found = list(repairs(FailedAttempt(plan(), Failure("forward", "RuntimeError", text))))
    assert any(other.working == "float32" for other in found)


def test_tuples_become_numbers_where_backward_wants_numbers():
    class Roll(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, shifts, dims):
            ctx.shifts, ctx.dims = shifts, dims
            return torch.roll(x, shifts, dims)

        @staticmethod
        def backward(ctx, grad):
            return torch.roll(grad, -ctx.shifts, ctx.dims), None, None

    sample = infer(from_object(Roll), 0)[0]
    assert all(isinstance(value, int) for value in sample.args[1:])


def test_unbind_gives_the_size_of_an_axis():
    class Cross(torch.autograd.Function):
        @staticmethod
        def forward(ctx, points):
            ctx.save_for_backward(points)
            x, y, z = points.unbind(-1)
            return x * y + z

        @staticmethod
        def backward(ctx, grad):
            x, y, _ = ctx.saved_tensors[0].unbind(-1)
            return torch.stack([grad * y, grad * x, grad], -1)

    sample = infer(from_object(Cross), 0)[0]
    assert sample.args[0].shape[-1] == 3


def test_a_parameter_that_backward_reduces_further_has_fewer_axes():
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, groups, weight):
            ctx.save_for_backward(x, weight)
            return x * weight.view(1, -1)[:, : x.shape[1]]

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            return grad * weight.view(1, -1), None, (grad * x).sum(0)

    sample = infer(from_object(Scale), 0)[0]
    assert sample.args[2].dim() == 1


def test_a_batch_that_gave_gradients_an_axis_more_is_left_out():
    start = Plan(
        ("m", "v", "w"),
        (TensorGuess(("a", "a")), TensorGuess(("b", "a")), TensorGuess(("c", "a"))),
    )
    sizes = start.sizes()
    (found,) = without_batch(start, {0: (sizes["b"], sizes["a"], sizes["a"])})
    assert [guess.axes for _, guess in found.tensors()] == [("a", "a"), ("a",), ("c", "a")]
    assert not list(without_batch(start, {0: (sizes["a"], sizes["a"], sizes["a"])}))


def shapes(function: type[torch.autograd.Function]) -> list[tuple[int, ...]]:
    sample = infer(from_object(function), 0)[0]
    return [tuple(part.shape) for part in sample.args if isinstance(part, torch.Tensor)]


def test_a_tensor_that_is_unpacked_has_that_many_slices():
    class Control(torch.autograd.Function):
        @staticmethod
        def forward(ctx, gains, error):
            kp, ki, kd = gains
            ctx.save_for_backward(gains, error)
            return kp * error + ki * error.cumsum(1) + kd * error.roll(1, 1)

        @staticmethod
        def backward(ctx, grad):
            gains, e = ctx.saved_tensors
            kp, ki, kd = gains
            grad_error = kp * grad + ki * grad.flip(1).cumsum(1).flip(1) + kd * grad.roll(-1, 1)
            parts = (e, e.cumsum(1), e.roll(1, 1))
            return torch.stack([(grad * part).sum() for part in parts]), grad_error

    assert shapes(Control)[0] == (3,)


def test_slices_that_differ_give_the_size_of_the_whole():
    class Perspective(torch.autograd.Function):
        @staticmethod
        def forward(ctx, points):
            ctx.save_for_backward(points)
            return points[:, :2] / points[:, 2:]

        @staticmethod
        def backward(ctx, grad):
            (points,) = ctx.saved_tensors
            depth = points[:, 2:]
            grad_depth = -(grad * points[:, :2]).sum(1, keepdim=True) / depth**2
            return torch.cat([grad / depth, grad_depth], 1)

    assert shapes(Perspective)[0][1] == 3


def test_a_recursion_that_broadcasts_its_state_gets_the_shape_of_the_state():
    class Decay(torch.autograd.Function):
        @staticmethod
        def forward(ctx, start, force, rate):
            states = [start[0]]
            for push in force:
                states.append(states[-1] + push - rate * states[-1])
            states = torch.stack(states)
            ctx.save_for_backward(start, rate, states)
            return states[1:]

        @staticmethod
        def backward(ctx, grad):
            start, rate, states = ctx.saved_tensors
            adjoint, pushes, grad_rate = torch.zeros_like(start[0]), [], torch.zeros_like(rate)
            for step in reversed(range(len(grad))):
                adjoint = adjoint + grad[step]
                pushes.append(adjoint)
                grad_rate = grad_rate - adjoint * states[step]
                adjoint = adjoint * (1 - rate)
            return adjoint[None], torch.stack(pushes[::-1]), grad_rate

    start, force, rate = shapes(Decay)
    assert start == (1, *rate)
    assert force[1:] == rate


def test_what_backward_sums_over_everything_is_a_scalar():
    class Follower(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, up):
            state, states = torch.zeros_like(x[:, 0]), []
            for column in x.unbind(1):
                state = state + up * (column - state)
                states.append(state)
            states = torch.stack(states, 1)
            ctx.save_for_backward(x, up, states)
            return states

        @staticmethod
        def backward(ctx, grad):
            x, up, states = ctx.saved_tensors
            before = torch.cat([torch.zeros_like(states[:, :1]), states[:, :-1]], 1)
            run, adjoint = torch.zeros_like(grad[:, 0]), []
            for step in reversed(range(grad.shape[1])):
                run = run + grad[:, step]
                adjoint.append(run)
                run = run * (1 - up)
            adjoint = torch.stack(adjoint[::-1], 1)
            grad_up = (adjoint * (x - before)).sum()
            return adjoint * up, grad_up

    assert [len(shape) for shape in shapes(Follower)] == [2, 0]


def test_a_length_in_the_documentation_is_kept():
    class Taps(torch.autograd.Function):
        """Filters x (B, T) by taps (3,)."""

        @staticmethod
        def forward(ctx, x, taps):
            ctx.save_for_backward(x, taps)
            return taps[0] * x + taps[1] * x.roll(1, 1) + taps[2] * x.roll(2, 1)

        @staticmethod
        def backward(ctx, grad):
            x, taps = ctx.saved_tensors
            grad_x = sum(taps[k] * grad.roll(-k, 1) for k in range(3))
            return grad_x, torch.stack([(grad * x.roll(k, 1)).sum() for k in range(3)])

    sample = infer(from_object(Taps), 0)[0]
    assert sample.args[1].shape == (3,)
    assert (1, 0) in sample.held


def test_numbers_that_are_no_shape():
    class Scaled(torch.autograd.Function):
        """Scales x, with size = (3, 4) and x = (2, 5) in mind, say; see f(x) and x(7,)."""

        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad

    (item,) = gather(from_object(Scaled))
    assert item.shape == ()


class ScaledHeads(torch.autograd.Function):
    """Forward takes matrices by accident; what backward sums has three axes then, not four."""

    @staticmethod
    def forward(ctx, maps, gains):
        if gains.shape != maps.shape[1:2]:
            raise ValueError("one gain per head")
        ctx.save_for_backward(maps, gains)
        return maps * gains.view(-1, 1, 1)

    @staticmethod
    def backward(ctx, grad):
        maps, gains = ctx.saved_tensors
        return grad * gains.view(-1, 1, 1), (grad * maps).sum((0, 2, 3))


def test_axes_that_only_backward_asks_for():
    first = infer(from_object(ScaledHeads))[0]
    maps, gains = first.args
    assert maps.dim() == 4
    assert gains.shape == maps.shape[1:2]
    assert not any("backward raises" in note for note in first.notes)


def grouped_mean(gathered):
    class GroupedMean(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, groups, num_groups):
            count = torch.bincount(groups, minlength=num_groups).clamp(min=1)
            ctx.save_for_backward(groups, count)
            total = x.new_zeros(num_groups, x.shape[1]).index_add_(0, groups, x)
            return total / count.unsqueeze(1)

        @staticmethod
        def backward(ctx, grad):
            groups, count = ctx.saved_tensors
            if gathered:
                count = count[groups]
            return grad[groups] / count.unsqueeze(1), None, None

    return GroupedMean


@pytest.mark.parametrize("gathered", [True, False])
def test_indices_are_not_all_equal_for_the_sake_of_a_number_of_places(gathered):
    """A single group shows nothing: every index belongs to it."""
    x, groups, number = infer(from_object(grouped_mean(gathered)))[0].args
    assert number == 3
    assert 1 < len(set(groups.tolist())) < len(groups) == len(x)


def test_a_single_place_is_taken_where_there_is_no_other():
    class FirstOnly(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, index, groups):
            if groups != 1:
                raise ValueError("groups must be 1")
            ctx.save_for_backward(index)
            ctx.shape = x.shape
            return x[:1][index]

        @staticmethod
        def backward(ctx, grad):
            (index,) = ctx.saved_tensors
            found = grad.new_zeros(ctx.shape)
            return found.index_add(0, index * 0, grad), None, None

    _, index, groups = infer(from_object(FirstOnly))[0].args
    assert groups == 1
    assert set(index.reshape(-1).tolist()) == {0}


class Constrained(torch.autograd.Function):
    """argmin of x'Qx / 2 + p'x where Ax = b: a system of equations that has one solution only where
    there are fewer constraints than unknowns, whose parts say nothing of that."""

    @staticmethod
    def forward(ctx, Q, p, A, b):
        n, m = Q.shape[-1], A.shape[-2]
        whole = torch.zeros(n + m, n + m, dtype=Q.dtype)
        whole[:n, :n] = Q
        whole[:n, n:] = A.T
        whole[n:, :n] = A
        right = torch.cat([-p, b.expand(p.shape[0], m)], dim=1)
        found = torch.linalg.solve(whole, right.T).T
        ctx.save_for_backward(whole, found)
        ctx.n = n
        return found[:, :n]

    @staticmethod
    def backward(ctx, g):
        whole, found = ctx.saved_tensors
        n = ctx.n
        x, nu = found[:, :n], found[:, n:]
        rest = g.new_zeros(g.shape[0], nu.shape[1])
        adjoint = torch.linalg.solve(whole.T, torch.cat([g, rest], dim=1).T).T
        dx, dnu = adjoint[:, :n], adjoint[:, n:]
        return -dx.T @ x, -dx, -(dnu.T @ x + nu.T @ dx), dnu.sum(0)


class OfVectors(Constrained):
    """The same for one problem, whose vectors forward takes for matrices just as well."""

    @staticmethod
    def forward(ctx, Q, p, A, b):
        n, m = p.shape[0], b.shape[0]
        whole = torch.zeros(n + m, n + m, dtype=Q.dtype)
        whole[:n, :n] = Q
        whole[:n, n:] = A.T
        whole[n:, :n] = A
        found = torch.linalg.solve(whole, torch.cat([-p, b]))
        ctx.save_for_backward(whole, found)
        ctx.n = n
        return found[:n]

    @staticmethod
    def backward(ctx, g):
        whole, found = ctx.saved_tensors
        n = ctx.n
        x, nu = found[:n], found[n:]
        adjoint = torch.linalg.solve(whole.T, torch.cat([g, g.new_zeros(nu.shape[0])]))
        dx, dnu = adjoint[:n], adjoint[n:]
        return -torch.outer(dx, x), -dx, -(torch.outer(dnu, x) + torch.outer(nu, dx)), dnu


@pytest.mark.parametrize(("op", "rank"), [(Constrained, 2), (OfVectors, 1)])
def test_a_system_has_fewer_constraints_than_unknowns(op, rank):
    sample = infer(from_object(op))[0]
    q, p, a, b = sample.args
    assert q.shape == (p.shape[-1], p.shape[-1])
    assert (p.dim(), b.dim()) == (rank, 1)
    assert a.shape == (b.shape[0], p.shape[-1])
    assert a.shape[0] < a.shape[1]
    assert not [note for note in sample.notes if "raises" in note]


def test_a_regular_system_keeps_its_sizes():
    class Ridge(torch.autograd.Function):
        @staticmethod
        def forward(ctx, A, b):
            gram = A.T @ A + torch.eye(A.shape[1], dtype=A.dtype)
            return torch.linalg.solve(gram, A.T @ b)

        @staticmethod
        def backward(ctx, g):
            raise NotImplementedError

    sample = infer(from_object(Ridge))[0]
    assert sample.args[0].shape == (3, 4)
    assert sample.bounds == ()


def test_what_is_put_one_behind_the_other_gets_as_long():
    text = "Incompatible shapes of A and B for the equation AX = B (16x16 and 17x7)"
    start = Plan(
        ("x", "y", "z"),
        (TensorGuess(axes("x", 1)), TensorGuess(axes("y", 1)), TensorGuess(axes("z", 1))),
        fixed=(("x.0", 5), ("y.0", 6), ("z.0", 11)),
    )
    made = list(repairs(FailedAttempt(start, Failure("forward", "RuntimeError", text))))
    assert made[0].guess("x").axes == made[0].guess("y").axes
    assert made[0].guess("z").axes != made[0].guess("x").axes


@pytest.mark.parametrize(
    ("argument", "found", "follows"),
    [
        ("y", "list", True),  # list(y)
        ("y", "Tensor", True),
        ("y", "str", False),
        ("sizes", "list", False),  # of another argument: which one is not known
    ],
)
def test_a_list_of_integers_that_an_operator_declares(argument, found, follows):
    text = f"op() Expected a value of type 'List[int]' for argument '{argument}' but instead "
    text += f"found type '{found}'."
    failed = FailedAttempt(plan(), Failure("forward", "RuntimeError", text))
    assert follows is any(
        isinstance(other.guess("y"), ValueGuess) and other.guess("y").kind == "shape"
        for other in repairs(failed)
    )


def test_a_tensor_where_a_compiled_function_takes_no_number():
    text = "forward(): incompatible function arguments. The following argument types are "
    text += "supported:\n    1. (arg0: torch.Tensor, arg1: torch.Tensor)\n\nInvoked with: 0.5"
    start = plan(scale=0.5, levels=4)
    first = next(repairs(FailedAttempt(start, Failure("forward", "TypeError", text))))
    assert isinstance(first.guess("scale"), TensorGuess)
    assert first.guess("scale").axes == ()
    assert first.cost - start.cost < 0.2  # before what an error only hints at
    assert first.guess("levels") == start.guess("levels")


def test_a_window_that_is_too_large_is_made_small():
    text = "Trying to create tensor with negative dimension -1: [5, 7, -1, -6]"
    shapes = first_shapes(plan(3, 3), "RuntimeError", text, 99)
    small = [k for k, (_, second) in enumerate(shapes) if second[1:] == (2, 3)]
    first = [k for k, (first, _) in enumerate(shapes) if first[1:] == (2, 3)]
    assert small[0] < first[0]  # the weight is named after the image


@pytest.mark.parametrize(
    "text",
    [
        "expand(torch.DoubleTensor{[5, 7, 6, 3]}, size=[6, 3]): the number of sizes provided (2)",
        "output with shape [6, 3] doesn't match the broadcast shape [5, 7, 6, 3]",
    ],
)
def test_what_more_axes_are_written_to_gets_as_many(text):
    shapes = first_shapes(plan(2, 3), "RuntimeError", text, 99)
    assert (4, 3) in [(len(first), len(second)) for first, second in shapes]


class AngleEnergy(torch.autograd.Function):
    """Of three points in a row, with one angle at rest for all."""

    @staticmethod
    def forward(ctx, a, b, k, rest):
        ctx.save_for_backward(a, b, k, rest)
        return 0.5 * k * ((a * b).sum(-1) - rest) ** 2

    @staticmethod
    def backward(ctx, g):
        a, b, k, rest = ctx.saved_tensors
        off = (a * b).sum(-1, keepdim=True) - rest
        slope = (g * k).unsqueeze(-1) * off
        return slope * b, slope * a, 0.5 * g * off.squeeze(-1) ** 2, -slope.sum().view_as(rest)


class Depthwise(torch.autograd.Function):
    """A convolution whose loops run over the window: none of size 0 is meant."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        rows, columns = w.shape[-2:]
        high, wide = x.shape[-2] - rows + 1, x.shape[-1] - columns + 1
        made = x.new_zeros(x.shape[0], x.shape[1], high, wide)
        for i in range(rows):
            for j in range(columns):
                made += w[:, i, j, None, None] * x[..., i : i + high, j : j + wide]
        return made

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        high, wide = g.shape[-2:]
        made, of_window = torch.zeros_like(x), []
        for i in range(w.shape[-2]):
            for j in range(w.shape[-1]):
                part = (..., slice(i, i + high), slice(j, j + wide))
                made[part] += g * w[:, i, j, None, None]
                of_window.append((g * x[part]).sum((0, 2, 3)))
        return made, torch.stack(of_window, -1).view_as(w)


def test_a_sum_in_the_form_of_an_input_is_a_number():
    found = inferred(AngleEnergy)
    assert [value.dim() for value in found] == [2, 2, 1, 0]


def test_nothing_has_the_size_of_zero():
    _, w = infer(from_object(Depthwise), 0)[0].args
    assert min(w.shape) > 1


def inferred(function: type[torch.autograd.Function]) -> list[torch.Tensor]:
    """Inputs with which backward runs."""
    sample = infer(from_object(function), 0)[0]
    leaves = [value.detach().requires_grad_() for value in sample.args]
    function.apply(*leaves).sum().backward()
    return leaves


class PairLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, left, right, warmth, bias):
        alike = left @ right.t()
        ctx.save_for_backward(left, right, alike, warmth, bias)
        return torch.tanh(alike * warmth.exp() + bias).sum()

    @staticmethod
    def backward(ctx, grad):
        left, right, alike, warmth, bias = ctx.saved_tensors
        scale = warmth.exp()
        g = grad * (1 - torch.tanh(alike * scale + bias) ** 2)
        return scale * g @ right, scale * g.t() @ left, (g * alike).sum() * scale, g.sum()


class Shifted(torch.autograd.Function):
    """Wrong: one number for all elements of the bias."""

    @staticmethod
    def forward(ctx, x, gain, bias):
        ctx.save_for_backward(x, gain)
        return x * gain + bias

    @staticmethod
    def backward(ctx, grad):
        x, gain = ctx.saved_tensors
        return grad * gain, (grad * x).sum(0), grad.sum()


class NamedPairLoss(PairLoss):
    """With a name that says what it is."""

    @staticmethod
    def forward(ctx, left, right, log_scale, bias):
        return PairLoss.forward(ctx, left, right, log_scale, bias)


@pytest.mark.parametrize("loss", [PairLoss, NamedPairLoss])
def test_a_bias_beside_a_temperature_is_a_number_too(loss):
    assert [value.dim() for value in inferred(loss)] == [2, 2, 0, 0]


def test_a_bias_whose_gradient_alone_is_summed_too_far_stays_a_vector():
    sample = infer(from_object(Shifted), 0)[0]
    assert [value.dim() for value in sample.args][2] == 1


def times(a, b):
    aw, ax, ay, az = a.unbind(-1)
    bw, bx, by, bz = b.unbind(-1)
    return torch.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        dim=-1,
    )


def turned(q, omega):
    """A quaternion turned by a rate: three numbers, and a fourth one put before them."""
    return times(q, torch.cat([omega.norm(dim=-1, keepdim=True).cos(), omega], dim=-1))


def test_a_slice_that_is_put_beside_an_input_counts():
    q, omega = infer(from_object(turned, name="turned"), 0)[0].args
    assert (q.shape[-1], omega.shape[-1]) == (4, 3)


def binned(x, logits):
    w = logits.softmax(0)
    k = (x * logits.numel()).floor().long().clamp(0, logits.numel() - 1)
    return w.cumsum(0)[k] + w[k]


def test_what_is_indexed_below_its_number_of_elements_is_a_vector():
    _, logits = infer(from_object(binned, name="binned"), 0)[0].args
    assert logits.dim() == 1


def constrained(Q, p, A, b):
    m = A.shape[-2]
    top = torch.cat([Q, A.mT], dim=-1)
    system = torch.cat([top, torch.cat([A, Q.new_zeros(m, m)], dim=-1)], dim=-2)
    return torch.linalg.solve(system, torch.cat([-p, b], dim=-1))[: Q.shape[-1]]


def test_a_right_hand_side_is_a_vector():
    Q, p, A, b = infer(from_object(constrained, name="constrained"), 0)[0].args
    n, m = Q.shape[-1], A.shape[0]
    assert (Q.shape, p.shape, A.shape, b.shape) == ((n, n), (n,), (m, n), (m,))


def test_a_matrix_of_more_rows_than_columns_gets_fewer():
    tall = Plan(("A", "b"), (TensorGuess(("m", "n")), TensorGuess(("m",)))).sized("m", 9)
    wide = tall.sized("m", 3)
    (made,) = made_wide(tall, 0.3)
    assert [made.sizes()[axis] for axis in ("m", "n")] == [tall.sizes()["n"] - 2, tall.sizes()["n"]]
    assert list(made_wide(wide, 0.3)) == []


@pytest.mark.parametrize("name", ["deformation", "cov"])
def test_a_logdet_is_of_a_matrix_that_is_symmetric_only_if_its_name_says_so(name):
    names: dict[str, object] = {"torch": torch}
    exec(f"def logdet({name}): return torch.logdet({name})", names)
    (value,) = infer(from_object(names["logdet"], name="logdet"), 0)[0].args
    assert torch.linalg.det(value) > 0
    assert torch.allclose(value, value.mT) == (name == "cov")


class Flow(torch.autograd.Function):
    """z + tanh(z w) u: of a ``u`` with a row for each of ``z`` forward makes something, too."""

    @staticmethod
    def forward(ctx, z, u, w):
        ctx.save_for_backward(z, u, w)
        return z + torch.tanh(z @ w)[:, None] * u

    @staticmethod
    def backward(ctx, g):
        z, u, w = ctx.saved_tensors
        h = torch.tanh(z @ w)
        by_a = (g @ u) * (1 - h * h)
        return g + by_a[:, None] * w, h @ g, by_a @ z


def test_a_vector_that_forward_would_broadcast():
    _, u, w = infer(from_object(Flow), 0)[0].args
    assert u.shape == w.shape
    assert u.dim() == 1


class Trapezoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, grid):
        ctx.save_for_backward(values, grid)
        return torch.trapezoid(values, grid, dim=1)

    @staticmethod
    def backward(ctx, g):
        _, grid = ctx.saved_tensors
        dt = grid[1:] - grid[:-1]
        zero = dt.new_zeros(1)
        weights = 0.5 * (torch.cat([dt, zero]) + torch.cat([zero, dt]))
        return g[:, None] * weights, None


def test_what_backward_computes_from_an_input_tells_its_number_of_axes():
    values, grid = infer(from_object(Trapezoid), 0)[0].args
    assert (values.dim(), grid.shape) == (2, values.shape[-1:])


class Ensemble(torch.autograd.Function):
    """ens: (M, ...) members first; obs: (...)."""

    @staticmethod
    def forward(ctx, ens, obs):
        ctx.save_for_backward(ens, obs)
        return (ens - obs).abs().mean(0)

    @staticmethod
    def backward(ctx, g):
        ens, obs = ctx.saved_tensors
        s = torch.sign(ens - obs) / ens.shape[0]
        return g * s, -g * s.sum(0)


def test_any_number_of_axes_are_those_of_another_argument():
    ens, obs = infer(from_object(Ensemble), 0)[0].args
    assert obs.shape == ens.shape[1:]


def reduced(op, x):
    if op == "mean":
        return x.mean(0)
    return x.sum(0)


def test_what_is_compared_with_a_text_is_one_whatever_its_name():
    ops = {sample.args[0] for sample in infer(from_object(reduced, name="reduced"), 0)}
    assert "mean" in ops


class TagScore(torch.autograd.Function):
    """Sum of the emissions of the tags of a sequence."""

    @staticmethod
    def forward(ctx, emissions, tags):
        b = torch.arange(emissions.shape[0])
        ctx.save_for_backward(emissions, tags)
        return sum(emissions[b, t, tags[:, t]] for t in range(emissions.shape[1]))

    @staticmethod
    def backward(ctx, g):
        emissions, tags = ctx.saved_tensors
        found = torch.zeros_like(emissions)
        for t in range(emissions.shape[1]):
            found[:, t].scatter_add_(1, tags[:, t : t + 1], g[:, None])
        return found, None


def test_indices_of_too_many_axes_for_backward_get_fewer():
    emissions, tags = infer(from_object(TagScore), 0)[0].args
    assert (emissions.dim(), tags.shape) == (3, emissions.shape[:2])


def grouped_attention(q, k, v):
    """Attention in which several queries share keys and values."""
    assert q.shape[1] % k.shape[1] == 0, "query heads must be a multiple of kv heads"
    times = q.shape[1] // k.shape[1]
    keys, values = repeated(k, times), repeated(v, times)
    hidden = torch.ones(q.shape[2], q.shape[2]).triu(1).bool()
    return (q @ keys.transpose(2, 3)).masked_fill(hidden, -torch.inf).softmax(-1) @ values


def repeated(x, times):
    return x.repeat_interleave(times, dim=1)


def test_queries_keys_and_values_get_axes_together_and_heads_that_are_repeated():
    q, k, v = infer(from_object(grouped_attention, name="grouped_attention"), 0)[0].args
    assert q.dim() == k.dim() == v.dim() == 4
    assert q.shape[1] % k.shape[1] == 0 < q.shape[1] - k.shape[1]
    assert k.shape[1] == v.shape[1]


def test_sizes_of_what_is_repeated_are_tied():
    text = "The size of tensor a (10) must match the size of tensor b (14) at dimension 1"
    assert first_shapes(plan(), "RuntimeError", text)[0] == [(A, A), (B, C)]
    text = "The size of tensor a (15) must match the size of tensor b (14) at dimension 1"
    assert first_shapes(plan(), "RuntimeError", text) == []
