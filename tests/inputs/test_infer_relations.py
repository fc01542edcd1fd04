"""What the code and its words say of how inputs belong together: indices, segments, sizes."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

import gradlint
from gradlint.inputs._infer import infer
from gradlint.inputs._iterations import iterated_matrices
from gradlint.inputs.designed_indices import other_indices
from gradlint.inputs.documentation import (
    documented_definite_input,
    documented_dtype,
    documented_interval,
    documented_interval_of_input,
)
from gradlint.inputs.resized import resized
from gradlint.inputs.values import _grouped_apart
from gradlint.model.sample import Sample
from gradlint.targets.build import from_object


def inferred(thing: object) -> Sample:
    return infer(from_object(thing), 0)[0]


def codes(thing: object) -> set[str]:
    """Codes of the findings that fail, at first order. What compiles and transforms the operator
    takes most of the time, and sees the same inputs."""
    found = gradlint.check(thing, seed=0, order=1, ignore=["GL9"]).findings
    return {finding.code for finding in found if finding.severity != "info"}


# Words.


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("alpha: (R, S) opacities in [0, 1), color: (R, S, C)", "unit"),
        ("saturation alpha in (0, 1]", "unit"),
        ("with 0 <= alpha < 1", "unit"),
        ("color in [0, 1], alpha: any number", ""),
        ("alpha lies in (0, inf)", "positive"),
        ("where |alpha| < 1", "small"),
        ("alpha: (0, 1, 2) order of the axes", ""),
        ("of alpha, limited to [0, 1] first", ""),
        ("alpha is clamped to the range [0, 1]", ""),
        ("alpha is in [0, 1], where it is clipped", "unit"),
    ],
)
def test_interval_is_that_of_the_parameter_it_stands_with(text, domain):
    assert documented_interval(text, "alpha", ["alpha", "color"]) == domain


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("Decoding of images in [0, 1].", "unit"),
        ("The entropy of given probabilities in (0, 1)", "unit"),
        ("Takes correlations in [-1, 1] apart.", "small"),
        ("Takes logits to probabilities in [0, 1].", ""),
        ("Returns the number of pixels in [0, 1].", ""),
        ("A histogram of values -> counts of bins in [0, 1]", ""),
        ("One of the axes (0, 1).", ""),
        ("A sum over rows in [2, 5]", ""),
    ],
)
def test_interval_of_what_an_op_is_computed_of(text, domain):
    assert documented_interval_of_input(text) == domain


@pytest.mark.parametrize(
    ("text", "definite"),
    [
        ("Principal square root of an SPD matrix by iteration.", True),
        ("log det of a batch of SPD matrices via Cholesky", True),
        ("The logarithm of a symmetric positive definite matrix", True),
        ("Trace of the positive-definite matrix that is given", True),
        ("A point on the manifold of SPD matrices", False),
        ("Parametrises the diagonal of an SPD matrix", False),
        ("Square root of a matrix", False),
        ("Log det of a positive semidefinite matrix", False),
    ],
)
def test_definite_matrices_that_an_op_is_computed_of(text, definite):
    assert documented_definite_input(text) is definite


class SquareRoot(torch.autograd.Function):
    """Principal square root of an SPD matrix, by a fixed number of steps."""

    @staticmethod
    def forward(ctx, a):
        y, z = a, torch.eye(len(a), dtype=a.dtype)
        for _ in range(20):
            y, z = 0.5 * (y + torch.linalg.inv(z)), 0.5 * (z + torch.linalg.inv(y))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        eye = torch.eye(len(y), dtype=y.dtype)
        system = torch.kron(y.mT.contiguous(), eye) + torch.kron(eye, y.mT.contiguous())
        return torch.linalg.solve(system, g.reshape(-1)).view(len(y), len(y))


class SquareRootHalved(SquareRoot):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return torch.linalg.solve(2 * y.mT, g)


@pytest.mark.parametrize(("op", "codes"), [(SquareRoot, set()), (SquareRootHalved, {"GL401"})])
def test_a_definite_matrix_is_given_where_documentation_says_so(op, codes):
    (matrix,) = infer(from_object(op))[0].args
    assert bool((torch.linalg.eigvalsh(matrix) > 0).all())
    found = gradlint.check(op, select="GL401", seed=0).targets[0].findings
    assert {item.code for item in found if item.severity == "error"} == codes


class Decoded(torch.autograd.Function):
    """Linear light of images in [0, 1]."""

    @staticmethod
    def forward(ctx, image):
        ctx.save_for_backward(image)
        return torch.where(image <= 0.04, image / 12.9, ((image + 0.05) / 1.05) ** 2.4)

    @staticmethod
    def backward(ctx, grad):
        (image,) = ctx.saved_tensors
        curve = 2.4 / 1.05 * ((image + 0.05) / 1.05) ** 1.4
        return grad * torch.where(image <= 0.04, torch.full_like(image, 1 / 12.9), curve)


class DecodedWrongly(Decoded):
    """Linear light of images in [0, 1]."""

    @staticmethod
    def backward(ctx, grad):
        return Decoded.backward(ctx, grad) / 1.05


def test_images_are_no_darker_than_black():
    assert infer(from_object(Decoded), 0)[0].domains == {"image": "between 0 and 1"}
    for op, wrong in ((Decoded, set()), (DecodedWrongly, {"GL401"})):
        (report,) = gradlint.check(op, seed=0, select=["GL0", "GL4", "GL5"]).targets
        assert {f.code for f in report.findings if f.severity != "info"} == wrong


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("risk (N,), event (N,) bool.", "mask"),
        ("row, event: (E,) int64, val: (E,)", "index"),
        ("event: (N,) with linear interpolation", ""),
        ("event: (N,) logits at integer positions", ""),
        ("event: bool, whether to sum", ""),
    ],
)
def test_dtype_is_read_beside_the_shape(text, kind):
    assert documented_dtype(text, "event", ["risk", "event", "row", "val"]) == kind


class ShapedByItsError(Function):
    @staticmethod
    def forward(ctx, a, b):
        if a.shape[1:] != b.shape:
            raise ValueError("a must be (T, B, D), b (B, D)")
        return a + b

    @staticmethod
    def backward(ctx, g):
        return g, g.sum(0)


class ShapedWithoutBrackets(Function):
    @staticmethod
    def forward(ctx, q, k):
        # q: B H L D, k: B H S D
        ctx.save_for_backward(q, k)
        return q @ k.mT

    @staticmethod
    def backward(ctx, g):
        q, k = ctx.saved_tensors
        return g @ k, g.mT @ q


def test_shapes_are_read_from_errors_and_without_brackets():
    assert [tensor.dim() for tensor in inferred(ShapedByItsError).args] == [3, 2]
    q, k = inferred(ShapedWithoutBrackets).args
    assert q.dim() == k.dim() == 4
    assert q.shape[:2] == k.shape[:2]
    assert q.shape[2] != k.shape[2]


# Indices.


class BendEnergy(Function):
    """Energy of angles; the columns of ``corners`` index the rows of ``pos``."""

    sign = 1.0

    @staticmethod
    def forward(ctx, pos, corners, k):
        i, j, m = corners.t()
        u, v = pos[i] - pos[j], pos[m] - pos[j]
        ctx.save_for_backward(pos, corners, k)
        return k * (u * v).sum(1) / u.norm(dim=1)

    @classmethod
    def gradients(cls, ctx, g):
        pos, corners, k = ctx.saved_tensors
        i, j, m = corners.t()
        u, v = pos[i] - pos[j], pos[m] - pos[j]
        n = u.norm(dim=1, keepdim=True)
        s = (g * k)[:, None]
        dot = (u * v).sum(1, keepdim=True)
        du, dv = s * (v / n - dot * u / n**3), s * u / n
        out = torch.zeros_like(pos)
        out.index_add_(0, i, du)
        out.index_add_(0, m, cls.sign * dv)
        out.index_add_(0, j, -du - dv)
        return out, None, g * dot[:, 0] / n[:, 0]

    @staticmethod
    def backward(ctx, g):
        return BendEnergy.gradients(ctx, g)


class BendEnergySignLost(BendEnergy):
    sign = -1.0

    @staticmethod
    def backward(ctx, g):
        return BendEnergySignLost.gradients(ctx, g)


def test_what_indexes_by_columns_holds_integers_and_unequal_ones():
    pos, corners, k = inferred(BendEnergy).args
    assert corners.dtype == torch.int64
    assert corners.shape[1] == 3
    assert bool((corners.sort(1).values.diff(dim=1) > 0).all())
    assert k.shape == corners.shape[:1]
    assert pos.dim() == 2
    assert codes(BendEnergy) == set()
    assert "GL401" in codes(BendEnergySignLost)


class Distances(Function):
    """Distances along edges, whose ends are two tensors."""

    @staticmethod
    def forward(ctx, pos, src, dst):
        d = pos[dst] - pos[src]
        ctx.save_for_backward(d, src, dst)
        ctx.count = len(pos)
        return (d * d).sum(1) ** 0.25

    @staticmethod
    def backward(ctx, g):
        d, src, dst = ctx.saved_tensors
        f = 0.5 * g[:, None] * d * (d * d).sum(1, keepdim=True) ** -0.75
        out = g.new_zeros(ctx.count, d.shape[1])
        return out.index_add(0, dst, f).index_add(0, src, -f), None, None


def test_both_ends_of_an_edge_differ_and_no_further_sample_makes_them_equal():
    _, src, dst = inferred(Distances).args
    assert bool((src != dst).all())
    op, sample = from_object(Distances), inferred(Distances)
    for item in other_indices(op, sample, repeat=True, from_the_end=False):
        assert bool((item.sample.args[1] != item.sample.args[2]).all())
    longer = resized(sample, {(1, 0): 11, (2, 0): 11}, seed=0)
    assert longer is not None
    assert bool((longer.args[1] != longer.args[2]).all())


def groups(indices: torch.Tensor) -> list[list[bool]]:
    return (indices == indices[:, None]).tolist()


def along_pairs(x, edges):
    src, dst = edges
    return x.new_zeros(len(x), x.shape[1]).index_add(0, dst, x[src])


@pytest.mark.parametrize("seed", range(5))
def test_both_ends_of_edges_make_other_groups(seed):
    _, src, dst = infer(from_object(Distances), seed=seed)[0].args
    assert groups(src) != groups(dst)
    _, edges = infer(from_object(along_pairs), seed=seed)[0].args
    assert groups(edges[0]) != groups(edges[1])
    assert bool((edges[0] != edges[1]).all())


def test_ends_that_make_the_same_groups_are_made_to_differ():
    ends = [torch.tensor([2, 0, 2]), torch.tensor([0, 2, 0])]
    sources, targets = _grouped_apart(ends, 3)
    assert groups(sources) != groups(targets)
    assert bool((sources != targets).all())
    assert set(sources.tolist()) != {0, 2} != set(targets.tolist())
    assert set(sources.tolist()) | set(targets.tolist()) == {0, 1, 2}
    apart = [torch.tensor([2, 2, 0]), torch.tensor([0, 1, 1])]
    assert _grouped_apart(apart, 3) is apart
    assert _grouped_apart(ends, 2) is ends


class Agreement(Function):
    """Sum of scores where two sets of labels are equal."""

    @staticmethod
    def forward(ctx, scores, labels, target_labels):
        same = (labels == target_labels).to(scores.dtype)
        ctx.save_for_backward(same)
        return (scores * same).sum()

    @staticmethod
    def backward(ctx, g):
        (same,) = ctx.saved_tensors
        return g * same, None, None


def test_labels_may_be_equal():
    _, labels, others = inferred(Agreement).args
    assert bool((labels == others).any())


class PairEnergy(Function):
    @staticmethod
    def forward(ctx, q, pos, pairs):
        i, j = pairs
        r = (pos[i] - pos[j]).norm(dim=-1)
        ctx.save_for_backward(q, pos, pairs)
        return (q[i] * q[j] / r).sum()

    @staticmethod
    def backward(ctx, g):
        q, pos, pairs = ctx.saved_tensors
        i, j = pairs
        d = pos[i] - pos[j]
        r = d.norm(dim=-1)
        gq = torch.zeros_like(q).index_add_(0, i, q[j] / r).index_add_(0, j, q[i] / r)
        f = -(q[i] * q[j] / r**3)[:, None] * d
        gp = torch.zeros_like(pos).index_add_(0, i, f).index_add_(0, j, -f)
        return g * gq, g * gp, None


def test_operands_get_as_many_axes_before_a_tie_lets_them_broadcast():
    q, pos, pairs = inferred(PairEnergy).args
    assert (q.dim(), pos.dim(), pairs.dim()) == (1, 2, 2)
    assert codes(PairEnergy) == set()


class Coordinates(Function):
    @staticmethod
    def forward(ctx, val, row, col, x, n_rows):
        if not (val.shape == row.shape == col.shape):
            raise ValueError("val, row and col must have the same length")
        ctx.save_for_backward(val, row, col, x)
        return x.new_zeros(n_rows).index_add_(0, row, val * x[col])

    @staticmethod
    def backward(ctx, g):
        val, row, col, x = ctx.saved_tensors
        gx = torch.zeros_like(x).index_add_(0, col, val * g[row])
        return g[row] * x[col], None, None, gx, None


class CoordinatesSwapped(Coordinates):
    @staticmethod
    def backward(ctx, g):
        val, row, col, x = ctx.saved_tensors
        gx = torch.zeros_like(x)
        gx[col] = val * g[row]
        return g[row] * x[col], None, None, gx, None


def test_pieces_of_a_sparse_matrix():
    val, row, col, x, _ = inferred(Coordinates).args
    assert val.shape == row.shape == col.shape
    assert x.dim() == 1
    assert codes(Coordinates) == set()
    assert codes(CoordinatesSwapped) != set()


# Sizes and loops.


class Tridiagonal(Function):
    @staticmethod
    def forward(ctx, low, diag, up, x):
        n = diag.numel()
        if low.shape != (n - 1,) or up.shape != (n - 1,) or x.shape != (n,):
            raise ValueError("off-diagonals need n - 1 entries")
        ctx.save_for_backward(low, diag, up, x)
        out = diag * x
        out[1:] += low * x[:-1]
        out[:-1] += up * x[1:]
        return out

    @staticmethod
    def backward(ctx, g):
        low, diag, up, x = ctx.saved_tensors
        gx = diag * g
        gx[:-1] += low * g[1:]
        gx[1:] += up * g[:-1]
        return g[1:] * x[:-1], g * x, g[:-1] * x[1:], gx


def test_sizes_in_an_arithmetic_relation():
    low, diag, up, x = inferred(Tridiagonal).args
    assert low.shape == up.shape == (len(diag) - 1,)
    assert x.shape == diag.shape == (len(diag),)
    assert len(diag) > 2
    assert codes(Tridiagonal) == set()


class ChunkedLoss(Function):
    """Mean of the squared distances of each row to the row that its label names, in chunks."""

    @staticmethod
    def forward(ctx, x, table, label, chunk=4):
        total = x.new_zeros(())
        gx, gt = torch.zeros_like(x), torch.zeros_like(table)
        for s in range(0, x.size(0), chunk):
            part, at = x[s : s + chunk], label[s : s + chunk]
            picked = torch.zeros_like(part @ table.t()).scatter_(1, at[:, None], 1.0)
            d = part - picked @ table
            total += (d * d).sum()
            gx[s : s + chunk] = 2 * d
            gt.index_add_(0, at, -2 * d)
        ctx.save_for_backward(gx, gt)
        return total

    @staticmethod
    def backward(ctx, g):
        gx, gt = ctx.saved_tensors
        return g * gx, g * gt, None, None


def test_what_a_loop_goes_along_together_has_one_size_and_defaults_stay():
    x, table, label, chunk = inferred(ChunkedLoss).args
    assert len(x) == len(label)
    assert table.dim() == 2
    assert chunk == 4
    assert codes(ChunkedLoss) == set()


def test_only_what_a_round_takes_over_is_a_state():
    def projected(batch, W, steps):
        total = 0.0
        for s in range(steps):
            part = batch[s]
            d = part @ W
            d *= 2
            total = total + d @ W.T
        return total

    def iterated(z, W, x):
        zs = [z]
        for _ in range(9):
            z = zs[-1]
            zs.append(torch.tanh(z @ W + x))
        return zs[-1]

    assert iterated_matrices(projected) == []
    assert iterated_matrices(iterated) == ["W"]


# Accidents of broadcasting.


class BestPath(Function):
    """log of the sum over all paths; ``links`` is shared by the batch."""

    scale = 1.0

    @staticmethod
    def alphas(x, links):
        found = [x[:, 0]]
        for t in range(1, x.size(1)):
            found.append(torch.logsumexp(found[-1].unsqueeze(2) + links, 1) + x[:, t])
        return found

    @staticmethod
    def forward(ctx, x, links):
        assert x.dim() == 3
        ctx.save_for_backward(x, links)
        return torch.logsumexp(BestPath.alphas(x, links)[-1], 1)

    @classmethod
    def gradients(cls, ctx, g):
        x, links = ctx.saved_tensors
        alphas = BestPath.alphas(x, links)
        top = torch.logsumexp(alphas[-1], 1)[:, None]
        beta = torch.zeros_like(x[:, 0])
        gx, gs = torch.zeros_like(x), torch.zeros_like(links)
        for t in range(x.size(1) - 1, -1, -1):
            gx[:, t] = (alphas[t] + beta - top).exp() * g[:, None]
            if t:
                pair = links + (x[:, t] + beta).unsqueeze(1)
                share = (alphas[t - 1].unsqueeze(2) + pair - top.unsqueeze(2)).exp()
                gs = gs + cls.scale * (share * g[:, None, None]).sum(0)
                beta = torch.logsumexp(pair, 2)
        return gx, gs

    @staticmethod
    def backward(ctx, g):
        return BestPath.gradients(ctx, g)


class BestPathScaled(BestPath):
    scale = 0.5

    @staticmethod
    def backward(ctx, g):
        return BestPathScaled.gradients(ctx, g)


def test_parameters_of_the_whole_batch_are_not_one_a_sample():
    _, links = inferred(BestPath).args
    assert links.dim() == 2
    assert codes(BestPath) == set()
    assert "GL401" in codes(BestPathScaled)


# Segments.


class PackedLogSoftmax(Function):
    @staticmethod
    def forward(ctx, scores: Tensor, cu_seqlens: list[int]):
        if cu_seqlens[0] != 0 or cu_seqlens[-1] != scores.size(0):
            raise ValueError("cu_seqlens must run from 0 to the packed length")
        ctx.lengths = [b - a for a, b in itertools.pairwise(cu_seqlens)]
        out = torch.cat([s.log_softmax(0) for s in scores.split(ctx.lengths)])
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, g):
        (out,) = ctx.saved_tensors
        pairs = zip(g.split(ctx.lengths), out.split(ctx.lengths), strict=True)
        return torch.cat([a - b.exp() * a.sum(0) for a, b in pairs]), None


class PackedUnmasked(PackedLogSoftmax):
    @staticmethod
    def backward(ctx, g):
        (out,) = ctx.saved_tensors
        return g - out.exp() * g.sum(0), None


class Ragged(Function):
    @staticmethod
    def forward(ctx, x: Tensor, lengths: list[int]):
        ctx.lengths = lengths
        return torch.stack([part.sum(0) for part in x.split(lengths)])

    @staticmethod
    def backward(ctx, g):
        counts = torch.tensor(ctx.lengths)
        return g.repeat_interleave(counts, 0), None


@pytest.mark.parametrize("op", [PackedLogSoftmax, Ragged])
def test_lists_cut_an_axis_into_unequal_segments(op):
    x, cuts = inferred(op).args
    assert type(cuts) is list
    lengths = torch.tensor(cuts) if op is Ragged else torch.tensor(cuts).diff()
    assert int(lengths.sum()) == len(x)
    assert int(lengths.max()) > 1
    assert codes(op) == set()


def test_a_sum_over_all_segments_is_found():
    assert "GL401" in codes(PackedUnmasked)


class Bent(Function):
    """Two thresholds and two slopes, one of each per channel of x."""

    @staticmethod
    def forward(ctx, x, low, slope_low, high, slope_high):
        ctx.save_for_backward(x)
        low, slope_low, high, slope_high = (
            p.view(1, -1, *[1] * (x.dim() - 2)) for p in (low, slope_low, high, slope_high)
        )
        y = torch.where(x >= high, high + slope_high * (x - high), x)
        return torch.where(x <= low, low + slope_low * (x - low), y)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        per_channel = g.sum([d for d in range(x.dim()) if d != 1])
        return g, *[per_channel] * 4


def test_what_is_done_with_each_of_several_arguments_says_the_same_of_all():
    x, *others = infer(from_object(Bent), 0)[0].args
    assert [tuple(value.shape) for value in others] == [(x.shape[1],)] * 4


class Biased(Function):
    """Doubles x (N, D); bias (D,) or None has to be written out."""

    @staticmethod
    def forward(ctx, x, bias):
        ctx.biased = bias is not None
        return 2 * x if bias is None else 2 * x + bias

    @staticmethod
    def backward(ctx, g):
        return 2 * g, g.sum(0) if ctx.biased else None


class AlwaysBiased(Biased):
    """Doubles x (N, D) and adds bias (D,)."""

    @staticmethod
    def forward(ctx, x, bias):
        ctx.biased = True
        return 2 * x + bias


@pytest.mark.parametrize(("op", "labels"), [(Biased, {"bias=None"}), (AlwaysBiased, set())])
def test_an_argument_without_a_default_is_left_out_where_forward_asks(op, labels):
    found = {sample.label for sample in infer(from_object(op), 0)}
    assert found == {"inferred"} | labels


class NeedsBias(Biased):
    """Doubles x (N, D); bias (D,) is asked for, and needed all the same."""

    @staticmethod
    def forward(ctx, x, bias):
        width = x.shape[1] if bias is None else len(bias)
        ctx.biased = True
        return 2 * x[:, :width] + bias.reshape(1, width)


def test_a_label_says_what_the_sample_has():
    """What a repair gives back was not left out."""
    assert [sample.label for sample in infer(from_object(NeedsBias), 0)] == ["inferred"]
