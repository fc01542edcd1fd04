"""Sizes that follow from others: neighbours, edges of bins, pairs, halves, packed triangles."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.inputs._extents import interleaved, lengths, measured, readings
from gradlint.inputs._infer import infer
from gradlint.inputs._plan import Plan, Related, TensorGuess
from gradlint.inputs.resized import resized, tied_axes
from gradlint.model.related import Formula, RelatedAxis, size_of
from gradlint.model.sample import Sample
from gradlint.targets.build import from_object

CODES = ("GL004", "GL1", "GL2", "GL4", "GL706")


def found(forward, backward):
    """Shapes of the first sample, and codes of what fails, at first order."""
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    op = type("Op", (Function,), members)
    (report,) = gradlint.check(op, seed=0, order=1, select=list(CODES)).targets
    shapes = [tuple(item.shape) for item in report.samples[0].args if item.shape is not None]
    return shapes, {item.code for item in report.findings if item.severity != "info"}


# What loops read.


def couplings(x, c):
    for i in range(x.shape[0] - 1):
        x[i] + c[i] * x[i + 1]


def faces(x, c):
    n = len(x)
    for i in range(n):
        if i > 0:
            x[i - 1] * c[i - 1]
        if i < n - 1:
            x[i + 1] * c[i]


def edges(x, c):
    return [x[i] * (c[i + 1] - c[i]) for i in range(x.numel())]


def windows(x, c, b):
    n, k = x.size(0), c.size(0)
    for i in range(n - k + 1):
        (x[i : i + k] * c).sum() + b[i]


def backwards(x, c):
    for i in range(x.shape[0] - 2, -1, -1):
        x[i] * c[i]


def interior(x, c):
    for i in range(1, x.shape[0] - 1):
        x[i - 1] * c[i] + x[i + 1]


def halves(x, c):
    for i in range(x.shape[0] // 2):
        x[2 * i] * c[i]


def together(x, c):
    for i, value in enumerate(x):
        value * c[i]


def within(x, c):
    couplings(x, c)


@pytest.mark.parametrize(
    ("function", "name", "formula"),
    [
        (couplings, "c", "n - 1"),
        (faces, "c", "n - 1"),
        (edges, "c", "n + 1"),
        (windows, "b", "n - k + 1"),
        (backwards, "c", "n - 1"),
        (interior, "c", "n"),
        (halves, "c", "(n // 2)"),
        (together, "c", "n"),
        (within, "c", "n - 1"),
    ],
    ids=lambda item: getattr(item, "__name__", None),
)
def test_loops_give_lengths(function, name, formula):
    read = readings(function, ("x", "c", "b"))
    assert {place: item.formula().text for place, item in lengths(read).items()} == {
        (name, 0): formula
    }


def chosen(x, c):
    for i in range(x.shape[0]):
        x[c[i].long()]


def own(x, c):
    for i in range(c.shape[0]):
        x[i] * c[i + 1 - 1]


def counted(x, c):
    at = 0
    for i in range(x.shape[0]):
        x[i] * c[at]
        at += 2


@pytest.mark.parametrize("function", [chosen, counted])
def test_what_is_read_at_unknown_places_has_no_length(function):
    read = readings(function, ("x", "c"))
    places = [("c", 0)] if function is counted else [("x", 0)]
    assert not set(places) & set(lengths(read))


def test_an_axis_read_as_far_as_its_size_says_keeps_it():
    read = readings(own, ("x", "c"))
    assert measured(read) == {("c", 0)}
    assert lengths(read)["x", 0].same_as() == ("c", 0)


def test_parts_that_are_taken_in_turn():
    def split(x, y):
        return x[..., ::2] * x[..., 1::2] + y[::2]

    assert interleaved(readings(split, ("x", "y"))) == {("x", -1): 2}


# Plans and samples.


def test_sizes_follow_in_plans():
    guesses = (TensorGuess(("x",)), TensorGuess(("k",)), TensorGuess(("y",)), TensorGuess(("z",)))
    plan = Plan(tuple("xkyz"), guesses).following("y", Related(Formula("n - k + 1"), ("x", "k")))
    sizes = plan.sizes()
    assert sizes["y"] == sizes["x"] - sizes["k"] + 1 > 1
    assert sizes["z"] not in (sizes["x"], sizes["k"], sizes["y"])
    assert plan.sized("y", 3).sizes()["y"] == 3
    assert plan.tied("x", "y").relations(["x", "k"]) == {}
    renamed = plan.renamed(lambda axis: f"{axis}'")
    assert renamed.sizes() == {f"{axis}'": size for axis, size in sizes.items()}
    small = Plan(("x", "y"), (TensorGuess(("x",)), TensorGuess(("y",))), pool=(2, 3, 4))
    assert small.following("y", Related(Formula("n - 2"), ("x",))).sizes() == {"x": 4, "y": 2}


def test_formulas_are_arithmetic_alone():
    assert Formula("n * (n - 1) // 2").at([5]) == 10
    assert Formula("n - k + 1").at([7, 3]) == 5
    assert Formula("- n + 3").at([5]) == -2
    assert size_of("x.0//2+1", {"x.0": 6}) == 4
    assert Formula("2**n").at([5]) == 32
    for text in ("open", "n.bit_length()", "n // 0", "2**(99*n)", "2**-n", "n +", "(n for n in n)"):
        with pytest.raises(ValueError, match="size"):
            Formula(text).at([1])


def test_sizes_follow_in_samples():
    related = (RelatedAxis((1, 0), Formula("n - 1"), (((0, 0), (2, 0)),)),)
    sample = Sample("", "inferred", (torch.rand(4), torch.rand(3), torch.rand(4)), related=related)
    assert tied_axes(sample) == {4: [(0, 0), (2, 0)]}
    larger = resized(sample, {(0, 0): 7, (2, 0): 7}, seed=0)
    assert [len(tensor) for tensor in larger.args] == [7, 6, 7]
    alone = resized(sample, {(0, 0): 7}, seed=0)
    assert [len(tensor) for tensor in alone.args] == [7, 3, 4]
    assert resized(sample, {(0, 0): 0, (2, 0): 0}, seed=0) is None


# Operators: right ones pass, also at other sizes; wrong ones are found at the right shapes.


def conduction(ctx, temp, cond):
    out = temp.clone()
    for i in range(temp.shape[0]):
        if i > 0:
            out[i] = out[i] + cond[i - 1] * (temp[i - 1] - temp[i])
        if i < temp.shape[0] - 1:
            out[i] = out[i] + cond[i] * (temp[i + 1] - temp[i])
    ctx.save_for_backward(temp, cond)
    return out


def conduction_right(ctx, g):
    temp, cond = ctx.saved_tensors
    step = g[1:] - g[:-1]
    of_temp = g.clone()
    of_temp[:-1] += cond * step
    of_temp[1:] -= cond * step
    return of_temp, -step * (temp[1:] - temp[:-1])


def conduction_wrong(ctx, g):
    of_temp, of_cond = conduction_right(ctx, g)
    return of_temp, -of_cond


def springs(ctx, pos, stiff):
    total, count = pos.new_zeros(()), 0
    for a in range(pos.shape[0]):
        for b in range(a + 1, pos.shape[0]):
            total = total + 0.5 * stiff[count] * ((pos[a] - pos[b]) ** 2).sum()
            count += 1
    ctx.save_for_backward(pos, stiff)
    return total


def springs_right(ctx, g):
    pos, stiff = ctx.saved_tensors
    i, j = torch.triu_indices(len(pos), len(pos), 1)
    apart = pos[i] - pos[j]
    force = g * stiff[:, None] * apart
    of_pos = torch.zeros_like(pos).index_add(0, i, force).index_add(0, j, -force)
    return of_pos, 0.5 * g * (apart**2).sum(1)


def springs_wrong(ctx, g):
    of_pos, of_stiff = springs_right(ctx, g)
    return of_pos, 2 * of_stiff


def lifting(ctx, x, w):
    even, odd = x[0::2], x[1::2]
    ctx.save_for_backward(even, w)
    return torch.cat([even, odd - w * even**2])


def lifting_right(ctx, g):
    even, w = ctx.saved_tensors
    first, second = g.chunk(2)
    of_x = g.new_zeros(g.shape)
    of_x[0::2] = first - 2 * second * w * even
    of_x[1::2] = second
    return of_x, -second * even**2


def lifting_wrong(ctx, g):
    of_x, of_w = lifting_right(ctx, g)
    return of_x, -of_w


def hazard(ctx, rate, cuts):
    ctx.save_for_backward(rate, cuts)
    return rate**2 * (cuts[1:] - cuts[:-1])


def hazard_right(ctx, g):
    rate, cuts = ctx.saved_tensors
    of_width = g * rate**2
    of_cuts = torch.cat([-of_width[:1], of_width[:-1] - of_width[1:], of_width[-1:]])
    return 2 * g * rate * cuts.diff(dim=0), of_cuts


def hazard_wrong(ctx, g):
    of_rate, of_cuts = hazard_right(ctx, g)
    return of_rate, -of_cuts


def skew(ctx, theta, x):
    n = x.shape[-1]
    i, j = torch.tril_indices(n, n, -1)
    matrix = theta.new_zeros(n, n)
    matrix[i, j] = theta
    ctx.save_for_backward(matrix - matrix.T, x)
    return x @ (matrix - matrix.T).T


def skew_right(ctx, g):
    matrix, x = ctx.saved_tensors
    n = x.shape[-1]
    of_matrix = g.reshape(-1, n).T @ x.reshape(-1, n)
    i, j = torch.tril_indices(n, n, -1)
    return of_matrix[i, j] - of_matrix[j, i], g @ matrix


def skew_wrong(ctx, g):
    of_theta, of_x = skew_right(ctx, g)
    return of_theta, -of_x


def sweep(ctx, x, c):
    out, i = x * x, 0
    while i + 1 < x.shape[0]:
        out[i] = out[i] + c[i] * x[i + 1]
        i += 1
    ctx.save_for_backward(x, c)
    return out


def sweep_right(ctx, g):
    x, c = ctx.saved_tensors
    of_x = 2 * g * x
    of_x[1:] += g[:-1] * c
    return of_x, g[:-1] * x[1:]


def sweep_wrong(ctx, g):
    of_x, of_c = sweep_right(ctx, g)
    return of_x, 2 * of_c


@pytest.mark.parametrize(
    ("forward", "right", "wrong", "formula"),
    [
        (conduction, conduction_right, conduction_wrong, lambda x, c: c == x - 1),
        (springs, springs_right, springs_wrong, lambda x, c: c == x * (x - 1) // 2),
        (lifting, lifting_right, lifting_wrong, lambda x, w: x == 2 * w),
        (hazard, hazard_right, hazard_wrong, lambda rate, cuts: cuts == rate + 1),
        (sweep, sweep_right, sweep_wrong, lambda x, c: c == x - 1),
    ],
    ids=lambda item: item.__name__,
)
def test_sizes_in_relation_are_the_first_guess(forward, right, wrong, formula):
    shapes, codes = found(forward, right)
    assert formula(*(shape[0] for shape in shapes))
    assert codes == set()
    assert shapes[1][0] > 1
    shapes, codes = found(forward, wrong)
    assert formula(*(shape[0] for shape in shapes))
    assert "GL401" in codes


def test_what_is_broadcast_into_a_packed_triangle_has_its_size():
    for backward, wanted in ((skew_right, set()), (skew_wrong, {"GL401"})):
        ((packed,), (_, n)), codes = found(skew, backward)
        assert packed == n * (n - 1) // 2
        assert codes == wanted


# A near miss: what one loop goes along together stays of one size, and a constant is no relation.


def recurrence(ctx, f, x):
    h, states = torch.zeros_like(x[0]), []
    for t in range(x.shape[0]):
        h = f[t] * h + x[t]
        states.append(h)
    ctx.save_for_backward(f, torch.stack(states))
    return torch.stack(states)


def recurrence_right(ctx, g):
    f, states = ctx.saved_tensors
    of_f, of_x, carried = torch.zeros_like(f), torch.zeros_like(g), torch.zeros_like(g[0])
    for t in reversed(range(len(g))):
        carried = carried + g[t]
        of_x[t] = carried
        of_f[t] = carried * states[t - 1] if t else 0
        carried = carried * f[t]
    return of_f, of_x


def test_what_a_loop_goes_along_together_stays_of_one_size():
    shapes, codes = found(recurrence, recurrence_right)
    assert shapes[0] == shapes[1]
    assert codes == set()


def kernel(ctx, x, taps):
    if taps.shape[0] != 3:
        raise ValueError("three taps")
    ctx.save_for_backward(x, taps)
    return taps[0] * x[:-2] + taps[1] * x[1:-1] + taps[2] * x[2:]


def test_a_constant_size_is_no_relation():
    op = type("Op", (Function,), {"forward": staticmethod(kernel), "backward": None})
    (sample, *_) = infer(from_object(op), 0)
    assert sample.args[1].shape[0] == 3
    assert sample.related == ()


def test_two_square_weights_in_one_line_are_found():
    """Each of them is asked for by an operation of its own, on one and the same line."""

    class Cell(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, h, uf, un):
            ctx.save_for_backward(a, b, h, uf, un)
            f = torch.sigmoid(a + h @ uf)
            return (1 - f) * h + f * torch.tanh(b + (f * h) @ un)

        @staticmethod
        def backward(ctx, g):
            a, b, h, uf, un = ctx.saved_tensors
            f = torch.sigmoid(a + h @ uf)
            n = torch.tanh(b + (f * h) @ un)
            db = g * f * (1 - n * n)
            dfh = db @ un.t()
            da = (g * (n - h) + dfh * h) * f * (1 - f)
            dh = g * (1 - f) + dfh * f + da @ uf.t()
            return da, db, dh, h.t() @ da, (f * h).t() @ db

    shapes = [tuple(tensor.shape) for tensor in infer(from_object(Cell))[0].args]
    batch, width = shapes[0]
    assert batch != width
    assert shapes == [(batch, width)] * 3 + [(width, width)] * 2


# Integers that point into axes of size one.


class PickedChain(Function):
    """Entries of a matrix that is given as a chain of two cores."""

    @staticmethod
    def forward(ctx, picks, first, last):
        if first.shape[0] != 1 or last.shape[2] != 1:
            raise ValueError("the chain begins and ends with rank one")
        if picks.dim() != 2 or picks.shape[1] != 2:
            raise ValueError("one pick for each core")
        ctx.save_for_backward(picks, first, last)
        return torch.einsum("apb,bpc->p", first[:, picks[:, 0]], last[:, picks[:, 1]])

    @staticmethod
    def backward(ctx, g):
        picks, first, last = ctx.saved_tensors
        left, right = first[0, picks[:, 0]], last[:, picks[:, 1], 0]
        of_first = torch.zeros_like(first).index_add(1, picks[:, 0], (g * right).T[None])
        of_last = torch.zeros_like(last).index_add(
            1, picks[:, 1], (g[:, None] * left).T[:, :, None]
        )
        return None, of_first, of_last


class OnePick(PickedChain):
    @staticmethod
    def forward(ctx, picks, first, last):
        if len(picks) != 1:
            raise ValueError("one pick at a time")
        return PickedChain.forward(ctx, picks, first, last)


@pytest.mark.parametrize("seed", [0, 1])
def test_rows_of_indices_are_more_than_one_and_repeat(seed):
    picks = infer(from_object(PickedChain), seed)[0].args[0]
    assert len(picks) > 2
    assert any(len(column.unique()) < len(column) for column in picks.T)


def test_one_row_of_indices_stays_one_where_forward_says_so():
    assert infer(from_object(OnePick))[0].args[0].shape == (1, 2)


# Matrices whose elements are the unknowns of a system of equations.


def kronecker_solve(a, q):
    n = len(a)
    system = torch.eye(n * n, dtype=a.dtype) - 0.1 * torch.kron(a.contiguous(), a.contiguous())
    return torch.linalg.solve(system, q.reshape(-1)).view(n, n)


def stein(ctx, a, q):
    ctx.save_for_backward(a, kronecker_solve(a, q))
    return kronecker_solve(a, q)


def stein_gradient(ctx, g):
    a, x = ctx.saved_tensors
    s = kronecker_solve(a.mT, g)
    return 0.1 * (s @ a @ x.mT + s.mT @ a @ x), s


def stein_gradient_transposed(ctx, g):
    of_a, of_q = stein_gradient(ctx, g)
    return of_a, of_q.mT


@pytest.mark.parametrize(
    ("backward", "codes"),
    [(stein_gradient, set()), (stein_gradient_transposed, {"GL401"})],
    ids=["right", "transposed"],
)
def test_unknowns_that_are_the_elements_of_a_matrix(backward, codes):
    shapes, red = found(stein, backward)
    assert shapes == [(3, 3), (3, 3)]
    assert red == codes


# Indices of which none occurs twice.


class SegmentShares(Function):
    """Softmax over the elements that share a segment."""

    @staticmethod
    def forward(ctx, logits, index, num_segments):
        low = torch.full((num_segments,), -1e30, dtype=logits.dtype)
        e = torch.exp(logits - low.scatter_reduce(0, index, logits, "amax")[index])
        share = e / torch.zeros_like(low).scatter_add(0, index, e)[index]
        ctx.save_for_backward(share, index)
        ctx.num_segments = num_segments
        return share

    @staticmethod
    def backward(ctx, g):
        share, index = ctx.saved_tensors
        total = torch.zeros(ctx.num_segments, dtype=g.dtype).scatter_add(0, index, g * share)
        return share * (g - total[index]), None, None


class SharesOfAll(SegmentShares):
    @staticmethod
    def backward(ctx, g):
        share, _ = ctx.saved_tensors
        return share * (g - (g * share).sum()), None, None


class TwoEnds(Function):
    """What lies between two rows."""

    @staticmethod
    def forward(ctx, rows, ends):
        if len(ends) != 2:
            raise ValueError("two ends")
        ctx.save_for_backward(ends)
        ctx.count = len(rows)
        return rows[ends[1]] - rows[ends[0]]

    @staticmethod
    def backward(ctx, g):
        (ends,) = ctx.saved_tensors
        found = g.new_zeros(ctx.count, *g.shape)
        return found.index_add(0, ends, torch.stack([-g, g])), None


@pytest.mark.parametrize("function", [SegmentShares, SharesOfAll])
def test_indices_are_enough_for_one_to_occur_twice(function):
    logits, index, _ = infer(from_object(function))[0].args
    assert len(index) == len(logits) > len(index.unique()) > 1


def test_as_many_indices_as_forward_demands_stay_as_many():
    assert infer(from_object(TwoEnds))[0].args[1].shape == (2,)
