"""Inputs that were guessed give way to others where only they are at fault; faults stay found."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gradlint
from gradlint.checking.examine import examine
from gradlint.inputs.samples import samples_for
from gradlint.model.events import REGUESSED, Event, Reguessed, Samples
from gradlint.model.report import TargetReport
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object

CODES = ("GL004", "GL1", "GL2", "GL4", "GL706")


def op(forward: Any, backward: Any) -> Any:
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Op", (torch.autograd.Function,), {**members, "__doc__": forward.__doc__})


def check(thing: Any, inputs: Any = None, codes: tuple[str, ...] = CODES) -> TargetReport:
    return gradlint.check(thing, inputs, seed=0, order=1, select=list(codes)).targets[0]


def red(report: TargetReport) -> list[tuple[str, str | None]]:
    """Code and input of what makes the operator fail."""
    return [(item.code, item.input) for item in report.findings if item.severity != "info"]


# Each relies on something that forward does not check.


def distance(ctx, delta, inv_cov):
    ctx.save_for_backward(delta, inv_cov)
    return torch.einsum("ni,ij,nj->n", delta, inv_cov, delta)


def distance_right(ctx, g):
    delta, inv_cov = ctx.saved_tensors
    outer = torch.einsum("n,ni,nj->ij", g, delta, delta)
    return 2 * g[:, None] * (delta @ inv_cov), outer


def distance_wrong(ctx, g):
    of_delta, of_matrix = distance_right(ctx, g)
    return of_delta / 2, of_matrix


def local(ctx, points, R):
    ctx.save_for_backward(R)
    return torch.linalg.solve(R, points.T).T


def local_right(ctx, g):
    return g @ ctx.saved_tensors[0].T, None


def local_wrong(ctx, g):
    return g @ ctx.saved_tensors[0], None


def entropy(ctx, logits, soft_targets):
    logs = logits.log_softmax(-1)
    ctx.save_for_backward(logs, soft_targets)
    return -(soft_targets * logs).sum(-1)


def entropy_right(ctx, g):
    logs, targets = ctx.saved_tensors
    return g[..., None] * (logs.exp() - targets), None


def entropy_wrong(ctx, g):
    logs, targets = ctx.saved_tensors
    return g[..., None] * (logs.exp() + targets), None


def fit(ctx, score, label):
    """Least squares for labels that are known to be -1 or 1."""
    ctx.save_for_backward(score, label)
    return (1 - label * score).pow(2)


def fit_right(ctx, g):
    score, label = ctx.saved_tensors
    return 2 * g * (score - label), None


def fit_wrong(ctx, g):
    score, label = ctx.saved_tensors
    return 2 * g * (score - 2 * label), None


def seen(ctx, x, present):
    ctx.save_for_backward(x, present)
    return (x * present).pow(2)


def seen_right(ctx, g):
    x, present = ctx.saved_tensors
    return 2 * g * x * present, None


def seen_wrong(ctx, g):
    return 2 * g * ctx.saved_tensors[0], None


def draw(ctx, mean, L, noise):
    ctx.save_for_backward(L, noise)
    return mean + noise @ L.T


def draw_right(ctx, g):
    L, noise = ctx.saved_tensors
    return g, (g.T @ noise).tril(), g @ L


def draw_wrong(ctx, g):
    of_mean, of_factor, of_noise = draw_right(ctx, g)
    return of_mean, of_factor.tril(-1), of_noise


def turn(ctx, x, omega_hat):
    ctx.save_for_backward(omega_hat)
    return x + x @ omega_hat.T


def turn_right(ctx, g):
    return g - g @ ctx.saved_tensors[0].T, None


def turn_wrong(ctx, g):
    return g + g @ ctx.saved_tensors[0].T, None


def reorder(ctx, x, new_order):
    ctx.save_for_backward(new_order)
    return x[new_order]


def reorder_right(ctx, g):
    return g[ctx.saved_tensors[0].argsort()], None


def reorder_wrong(ctx, g):
    return g[ctx.saved_tensors[0]], None


def counted(ctx, alpha, beta, k, n):
    ctx.save_for_backward(alpha, beta, k, n)
    log_beta = torch.lgamma(alpha) + torch.lgamma(beta) - torch.lgamma(alpha + beta)
    there = torch.lgamma(alpha + k) + torch.lgamma(beta + n - k) - torch.lgamma(alpha + beta + n)
    return log_beta.sum() - there.sum()


def counted_right(ctx, g):
    alpha, beta, k, n = ctx.saved_tensors
    psi = torch.digamma
    common = psi(n + alpha + beta) - psi(alpha + beta)
    of_alpha = psi(alpha) - psi(k + alpha) + common
    return g * of_alpha, g * (psi(beta) - psi(n - k + beta) + common), None, None


def counted_wrong(ctx, g):
    of_alpha, of_beta, _, _ = counted_right(ctx, g)
    return of_alpha, of_beta / 2, None, None


RELYING = (
    (distance, distance_right, distance_wrong),
    (local, local_right, local_wrong),
    (entropy, entropy_right, entropy_wrong),
    (fit, fit_right, fit_wrong),
    (seen, seen_right, seen_wrong),
    (draw, draw_right, draw_wrong),
    (turn, turn_right, turn_wrong),
    (reorder, reorder_right, reorder_wrong),
    (counted, counted_right, counted_wrong),
)


@pytest.mark.parametrize(("forward", "right", "wrong"), RELYING, ids=lambda f: f.__name__)
def test_what_an_op_relies_on_is_guessed_once_it_is_wrong_elsewhere(
    forward: Any, right: Any, wrong: Any
) -> None:
    assert red(check(op(forward, right))) == []
    assert red(check(op(forward, wrong)))


# Nothing suggests that the inputs are special: what backward relies on is the fault.


def bilinear(ctx, x, weight):
    ctx.save_for_backward(x, weight)
    return ((x @ weight) * x).sum(-1)


def bilinear_wrong(ctx, g):
    x, weight = ctx.saved_tensors
    return 2 * g[:, None] * (x @ weight), torch.einsum("n,ni,nj->ij", g, x, x)


def weighted(ctx, logits, importance):
    return entropy(ctx, logits, importance)


def quotient(ctx, x, y):
    ctx.save_for_backward(x, y)
    return x / y


def quotient_wrong(ctx, g):
    x, y = ctx.saved_tensors
    return g * y, -g * x / y**2


def mixed(ctx, probs, values):
    total = probs.sum(-1, keepdim=True)
    ctx.save_for_backward(probs, values, total)
    return (probs * values / total).sum(-1)


def mixed_wrong(ctx, g):
    probs, values, total = ctx.saved_tensors
    return g[..., None] * values, g[..., None] * probs / total


def attend(ctx, Q, K):
    ctx.save_for_backward(Q, K)
    return torch.tanh(Q @ K.T)


def attend_wrong(ctx, g):
    Q, K = ctx.saved_tensors
    inner = g * (1 - torch.tanh(Q @ K.T))
    return inner @ K, inner.T @ Q


def powered(ctx, x):
    ctx.save_for_backward(x)
    return x.abs() ** 1.5


def powered_wrong(ctx, g):
    return g * 1.5 * ctx.saved_tensors[0].abs().sqrt()


def unit(ctx, x):
    """Rows as unit vectors: the output is normalized."""
    y = x / x.norm(dim=-1, keepdim=True)
    ctx.save_for_backward(y)
    return y


def unit_wrong(ctx, g):
    (y,) = ctx.saved_tensors
    return g - (g * y).sum(-1, keepdim=True) * y


def picked(ctx, table, index):
    ctx.save_for_backward(index)
    ctx.rows = table.shape[0]
    return table[index]


def picked_wrong(ctx, g):
    made = g.new_zeros(ctx.rows, *g.shape[1:])
    made[ctx.saved_tensors[0]] = g
    return made, None


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        (bilinear, bilinear_wrong),
        (weighted, entropy_right),
        (quotient, quotient_wrong),
        (mixed, mixed_wrong),
        (attend, attend_wrong),
        (powered, powered_wrong),
        (unit, unit_wrong),
        (picked, picked_wrong),
    ],
    ids=lambda f: f.__name__,
)
def test_a_fault_that_hides_at_special_values_stays_found(forward: Any, backward: Any) -> None:
    report = check(op(forward, backward))
    assert ("GL401", "error") in {(item.code, item.severity) for item in report.findings}


# Shapes that forward broadcasts.


def chain(ctx, diagonal, off, x):
    ctx.save_for_backward(diagonal, off, x)
    beside = torch.zeros_like(diagonal * x)
    for i in range(x.shape[0] - 1):
        beside[i] += off[i] * x[i + 1]
        beside[i + 1] += off[i] * x[i]
    return diagonal * x + beside


def chain_right(ctx, g):
    diagonal, off, x = ctx.saved_tensors
    of_x = diagonal * g
    of_x[:-1] += off * g[1:]
    of_x[1:] += off * g[:-1]
    return g * x, g[:-1] * x[1:] + g[1:] * x[:-1], of_x


def chain_wrong(ctx, g):
    of_diagonal, of_off, of_x = chain_right(ctx, g)
    return of_diagonal, of_off / 2, of_x


def test_shapes_that_are_broadcast_by_accident_are_left() -> None:
    report = check(op(chain, chain_right), codes=CODES[:-1])
    assert red(report) == []
    diagonal, off, x = (item.shape or [] for item in report.samples[0].args)
    assert diagonal == x == [off[0] + 1, *off[1:]]
    assert ("GL401", "off") in red(check(op(chain, chain_wrong)))


def per_channel(ctx, x, weight):
    ctx.save_for_backward(x, weight)
    return x * weight.view(-1, *([1] * (x.dim() - 2)))


def per_channel_right(ctx, g):
    x, weight = ctx.saved_tensors
    others = [axis for axis in range(x.dim()) if axis != 1]
    return g * weight.view(-1, *([1] * (x.dim() - 2))), (g * x).sum(others)


def per_channel_wrong(ctx, g):
    return per_channel_right(ctx, g)[0], (g * ctx.saved_tensors[0]).sum(0)


def test_numbers_of_axes_that_forward_is_written_for_are_no_accident() -> None:
    assert red(check(op(per_channel, per_channel_right))) == []
    found = {code for code, _ in red(check(op(per_channel, per_channel_wrong)))}
    assert found & {"GL201", "GL004", "GL706"}


def energy(ctx, u, stiffness):
    ctx.save_for_backward(u, stiffness)
    return 0.5 * u @ stiffness @ u


def energy_right(ctx, g):
    u, stiffness = ctx.saved_tensors
    return g * (stiffness @ u), 0.5 * g * torch.outer(u, u)


def energy_wrong(ctx, g):
    of_u, of_matrix = energy_right(ctx, g)
    return of_u / 2, of_matrix


def test_a_rank_at_which_backward_raises_is_left() -> None:
    report = check(op(energy, energy_right))
    assert red(report) == []
    assert [item.shape for item in report.samples[0].args] == [[3], [3, 3]]
    assert red(check(op(energy, energy_wrong)))


def diffuse(ctx, u, k):
    """One step of diffusion along a rod; ``solve`` takes several rods, as columns, by accident."""
    return torch.linalg.solve(_laplacian(k), u)


def _laplacian(k):
    none = k.new_zeros(1)
    diagonal = torch.diag(1 + torch.cat([k, none]) + torch.cat([none, k]))
    return diagonal - torch.diag(k, 1) - torch.diag(k, -1)


def diffuse_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs, output)


def diffuse_right(ctx, g):
    _, k, new = ctx.saved_tensors
    of_u = torch.linalg.solve(_laplacian(k), g)
    return of_u, -of_u.diff() * new.diff()


def diffuse_wrong(ctx, g):
    u, k, _ = ctx.saved_tensors
    of_u = torch.linalg.solve(_laplacian(k), g)
    return of_u, -of_u.diff() * u.diff()


def damp(ctx, u, k):
    return u[..., 1:] * k


def damp_right(ctx, g):
    u, k, _ = ctx.saved_tensors
    return torch.nn.functional.pad(g * k, (1, 0)), (g * u[..., 1:]).sum_to_size(k.shape)


def damp_wrong(ctx, g):
    u, k, _ = ctx.saved_tensors
    of_k = (g * u[..., 1:]).reshape(-1, len(k))
    return damp_right(ctx, g)[0], of_k.sum(0) / len(of_k)


def module_of(forward: Any, backward: Any) -> type[torch.nn.Module]:
    def of_two(u: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return forward(None, u, k)

    members = {
        "forward": staticmethod(of_two),
        "setup_context": staticmethod(diffuse_setup),
        "backward": staticmethod(backward),
    }
    inner = type("Inner", (torch.autograd.Function,), members)

    class Rod(torch.nn.Module):
        """Its conductivities are positive, so that it keeps their logarithms."""

        def __init__(self, places: int) -> None:
            super().__init__()
            self.log_k = torch.nn.Parameter(torch.zeros(places - 1))

        def forward(self, u: torch.Tensor) -> torch.Tensor:
            return inner.apply(u, self.log_k.exp())

    return Rod


def test_shapes_that_only_an_operator_inside_broadcasts_are_left() -> None:
    report = check(module_of(diffuse, diffuse_right))
    assert red(report) == []
    assert len(report.samples[0].args[0].shape) == 1
    assert ("GL401", "log_k") in red(check(module_of(diffuse, diffuse_wrong)))


def test_a_gradient_of_the_right_shape_is_no_sign_of_other_shapes() -> None:
    assert red(check(module_of(damp, damp_right))) == []
    assert {name for _, name in red(check(module_of(damp, damp_wrong)))} == {"log_k"}


# Numbers that backward sums over all elements for, where forward broadcasts.


def wave(ctx, x, y, period, width):
    d = torch.pi * (x[:, None] - y) / period
    k = torch.exp(-2 * torch.sin(d) ** 2 / width**2)
    ctx.save_for_backward(d, k, period, width)
    return k


def wave_right(ctx, g):
    d, k, period, width = ctx.saved_tensors
    gd = -2 * g * k * torch.sin(2 * d) / width**2
    of_x = gd * torch.pi / period
    of_period = -(gd * d).sum() / period
    of_width = (4 * g * k * torch.sin(d) ** 2).sum() / width**3
    return of_x.sum(1), -of_x.sum(0), of_period, of_width


def wave_wrong(ctx, g):
    of_x, of_y, of_period, of_width = wave_right(ctx, g)
    return of_x, of_y, of_period, of_width / 2


def weighed(ctx, x, weight):
    """Weigh the columns of ``x`` (N, D) by ``weight`` (D,)."""
    ctx.save_for_backward(x, weight)
    return x * weight.square()


def weighed_right(ctx, g):
    x, weight = ctx.saved_tensors
    return g * weight.square(), 2 * (g * x).sum(0) * weight


def weighed_wrong(ctx, g):
    x, weight = ctx.saved_tensors
    return g * weight.square(), 2 * (g * x).sum() * weight


def test_what_backward_sums_over_everything_for_is_a_number() -> None:
    report = check(op(wave, wave_right))
    assert red(report) == []
    assert [item.shape for item in report.samples[0].args][2:] == [[], []]
    assert ("GL401", "width") in red(check(op(wave, wave_wrong)))


def test_a_sum_over_too_much_stays_found() -> None:
    assert red(check(op(weighed, weighed_right))) == []
    assert ("GL401", "weight") in red(check(op(weighed, weighed_wrong)))


def directed(ctx, angle, kappa):
    ctx.save_for_backward(angle, kappa)
    return kappa * angle.cos() - torch.special.i0e(kappa).log() - kappa


def directed_right(ctx, g):
    angle, kappa = ctx.saved_tensors
    ratio = torch.special.i1e(kappa) / torch.special.i0e(kappa)
    return -g * kappa * angle.sin(), g * (angle.cos() - ratio)


def directed_wrong(ctx, g):
    of_angle, of_kappa = directed_right(ctx, g)
    return of_angle, of_kappa + g


def test_a_quantity_without_a_sign_may_be_meant_to_be_positive() -> None:
    report = check(op(directed, directed_right))
    assert red(report) == []
    assert bool(report.samples[0].args[1].shape == [3, 4])
    assert "`kappa`: positive (its name)" in report.samples[0].notes[0]
    assert red(check(op(directed, directed_wrong))) == [("GL401", "kappa")]


def ridge(ctx, X, y, lam):
    A = X.mT @ X + lam * torch.eye(X.shape[-1], dtype=X.dtype)
    L = torch.linalg.cholesky(A)
    w = torch.cholesky_solve(X.mT @ y, L)
    ctx.save_for_backward(X, y, L, w)
    return w


def ridge_right(ctx, g):
    X, y, L, w = ctx.saved_tensors
    v = torch.cholesky_solve(g, L)
    return (y - X @ w) @ v.mT - (X @ v) @ w.mT, X @ v, -(v * w).sum()


def ridge_wrong(ctx, g):
    of_X, of_y, of_lam = ridge_right(ctx, g)
    return of_X, of_y, 2 * of_lam


def ridge_by_default(ctx, X, y, lam=0.7):
    return ridge(ctx, X, y, lam)


def test_a_number_with_a_right_gradient_is_a_tensor() -> None:
    report = check(op(ridge, ridge_right))
    assert red(report) == []
    assert report.samples[0].args[2].shape == []
    assert "`lam`: positive (backward returns a gradient for it)" in report.samples[0].notes[0]


def test_a_gradient_for_a_number_stays_found() -> None:
    assert red(check(op(ridge, ridge_wrong))) == [("GL102", "lam")]
    assert red(check(op(ridge_by_default, ridge_right))) == [("GL102", "lam")]


def between(ctx, a, b, t):
    ctx.save_for_backward(a, b, t)
    inner = (a * b).sum(-1, keepdim=True)
    return a * torch.sin((1 - t) * inner) + b * torch.sin(t * inner)


def between_right(ctx, g):
    a, b, t = ctx.saved_tensors
    inner = (a * b).sum(-1, keepdim=True)
    first, second = torch.cos((1 - t) * inner), torch.cos(t * inner)
    ga, gb = (g * a).sum(-1, keepdim=True), (g * b).sum(-1, keepdim=True)
    of_inner = ga * (1 - t) * first + gb * t * second
    of_t = inner * (gb * second - ga * first)
    of_a = g * torch.sin((1 - t) * inner) + of_inner * b
    return of_a, g * torch.sin(t * inner) + of_inner * a, of_t.sum_to_size(t.shape)


def between_wrong(ctx, g):
    of_a, of_b, of_t = between_right(ctx, g)
    return of_a, of_b, 2 * of_t


def test_what_backward_sums_to_its_shape_may_be_one_number_a_vector() -> None:
    report = check(op(between, between_right))
    assert red(report) == []
    assert report.samples[0].args[2].shape == [3, 1]
    assert ("GL401", "t") in red(check(op(between, between_wrong)))


def hazard(ctx, risk, event):
    ctx.save_for_backward(risk, event)
    return ((risk - torch.logcumsumexp(risk, 0)) * event).sum()


def hazard_right(ctx, g):
    risk, event = ctx.saved_tensors
    share = torch.exp(risk[None, :] - torch.logcumsumexp(risk, 0)[:, None]).tril()
    return g * (event - (event[:, None] * share).sum(0)), None


def hazard_wrong(ctx, g):
    risk, event = ctx.saved_tensors
    share = torch.exp(risk[None, :] - torch.logcumsumexp(risk, 0)[:, None]).tril()
    return g * (event - (event[:, None] * share).sum(1)), None


def apart(ctx, points):
    """Squared distances of points (N, D)."""
    ctx.save_for_backward(points)
    return (points[None, :] - points[:, None]).square().sum()


def apart_wrong(ctx, g):
    (points,) = ctx.saved_tensors
    return 4 * g * (points[:, None] - points[None, :]).sum(0)


def apart_right(ctx, g):
    return -apart_wrong(ctx, g)


def test_what_is_paired_with_itself_may_be_a_vector() -> None:
    report = check(op(hazard, hazard_right))
    assert red(report) == []
    assert [item.shape for item in report.samples[0].args] == [[3], [3]]
    assert red(check(op(hazard, hazard_wrong))) == [("GL401", "risk")]
    report = check(op(apart, apart_right))
    assert (red(report), len(report.samples[0].args[0].shape)) == ([], 2)
    assert red(check(op(apart, apart_wrong))) == [("GL401", "points")]


# Triangles and squares that documentation speaks of.


def substituted(ctx, A, B):
    """Solves a system by substitution.

    Args:
        A: (m, m) triangular coefficient matrix.
        B: (m, p) right-hand sides.
    """
    x = torch.linalg.solve_triangular(A, B, upper=False)
    ctx.save_for_backward(A, x)
    return x


def substituted_right(ctx, g):
    A, x = ctx.saved_tensors
    of_b = torch.linalg.solve_triangular(A.mT, g, upper=True)
    return -of_b @ x.mT, of_b


def substituted_wrong(ctx, g):
    of_a, of_b = substituted_right(ctx, g)
    return -of_a, of_b


def substituted_by_half(ctx, A, B):
    """Solves a system by substitution. Only the lower triangle of `A` is read.

    Args:
        A: (m, m) coefficient matrix, lower triangular.
        B: (m, p) right-hand sides.
    """
    return substituted(ctx, A, B)


def substituted_by_half_right(ctx, g):
    of_a, of_b = substituted_right(ctx, g)
    return of_a.tril(), of_b


def test_what_is_said_not_to_be_read_has_no_gradient() -> None:
    assert red(check(op(substituted_by_half, substituted_by_half_right))) == []
    assert red(check(op(substituted_by_half, substituted_right))) == [("GL401", "A")]


def substituted_sparsely(ctx, A, B):
    """Solves a system by substitution.

    Args:
        A: sparse triangular coefficient matrix, shape (m, m).
        B: right-hand sides, shape (m, p).
    """
    if A.layout != torch.sparse_csr:
        raise ValueError("A should be in CSR sparse format")
    dense = A.to_dense()
    x = torch.linalg.solve_triangular(dense, B, upper=False)
    ctx.save_for_backward(A, dense, x)
    return x


def _sparse_gradient(ctx, g, sign):
    A, dense, x = ctx.saved_tensors
    of_b = torch.linalg.solve_triangular(dense.mT, g, upper=True)
    pointers, columns = A.crow_indices(), A.col_indices()
    rows = torch.repeat_interleave(torch.arange(len(A)), pointers.diff())
    values = sign * (of_b @ x.mT)[rows, columns]
    return torch.sparse_csr_tensor(pointers, columns, values, A.shape), of_b


def substituted_sparsely_right(ctx, g):
    return _sparse_gradient(ctx, g, -1)


def substituted_sparsely_wrong(ctx, g):
    return _sparse_gradient(ctx, g, 1)


def inverted(ctx, x):
    """Square-matrix pseudo-inverse, by which near-singular ones are inverted too."""
    inverse = torch.linalg.pinv(x)
    ctx.save_for_backward(inverse)
    return inverse


def inverted_right(ctx, g):
    (inverse,) = ctx.saved_tensors
    return -inverse.mT @ g @ inverse.mT


def inverted_wrong(ctx, g):
    (inverse,) = ctx.saved_tensors
    return -inverse.mT @ g.mT @ inverse.mT if g.shape[-1] == g.shape[-2] else g.mT


def inverted_silently(ctx, x):
    return inverted(ctx, x)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize(
    ("forward", "right", "wrong", "name", "what"),
    [
        (substituted, substituted_right, substituted_wrong, "A", "lower triangular"),
        (
            substituted_sparsely,
            substituted_sparsely_right,
            substituted_sparsely_wrong,
            "A",
            "lower triangular",
        ),
        (inverted, inverted_right, inverted_wrong, "x", "square matrices"),
    ],
)
def test_triangles_and_squares_that_are_documented(
    forward: Any, right: Any, wrong: Any, name: str, what: str
) -> None:
    report = check(op(forward, right))
    assert red(report) == []
    assert report.samples[0].notes[0] == (
        f"guessed otherwise, since a gradient is wrong at other values: `{name}`: {what} "
        "(the source)"
    )
    assert ("GL401", name) in red(check(op(forward, wrong)))


def test_a_matrix_is_not_taken_for_a_square_where_nothing_says_so() -> None:
    assert red(check(op(inverted_silently, inverted_right))) == [("GL401", "x")]


# What is said, and what is asked.


def test_the_report_says_what_was_wrong_at_the_first_guess() -> None:
    report = check(op(distance, distance_right))
    assert report.notes == [
        "forward takes other inputs, for which it may not be meant: wrong gradient for `delta` "
        "there"
    ]
    assert report.samples[0].notes[0] == (
        "guessed otherwise, since a gradient is wrong at other values: `inv_cov`: symmetric "
        "positive definite (its name)"
    )
    looked = [(item.label, item.verdict) for item in report.tried]
    assert looked[0] == ("guessed otherwise, in place of inferred", "right")


def test_nothing_else_is_guessed_for_given_inputs_and_right_gradients() -> None:
    generator = torch.Generator().manual_seed(0)
    given = (torch.randn(4, 3, generator=generator), torch.randn(3, 3, generator=generator))
    report = check(op(distance, distance_right), [tuple(t.requires_grad_() for t in given)])
    assert red(report) == [("GL401", "delta")]
    for found in (report, check(op(entropy, lambda ctx, g: whole(ctx, g)))):
        assert not any(REGUESSED in item.label for item in found.tried)


def whole(ctx, g):
    logs, targets = ctx.saved_tensors
    return g[..., None] * (targets.sum(-1, keepdim=True) * logs.exp() - targets), None


def test_the_guess_is_the_same_again_after_a_crash() -> None:
    settings = Settings(seed=0, order=1, select=("GL401",))
    bound = from_object(op(distance, distance_right))

    def run(done: frozenset[tuple[str, str]]) -> list[Event]:
        events: list[Event] = []
        examine(bound, samples_for(bound, settings)[:1], settings, events.append, done)
        return events

    (reguessed,) = [item for item in run(frozenset()) if isinstance(item, Reguessed)]
    again = run(frozenset({(REGUESSED, "inferred")}))
    assert not any(isinstance(item, Reguessed) for item in again)
    assert [item.samples for item in again if isinstance(item, Samples)] == [[reguessed.sample]]


def solved(ctx, x, scale_tril):
    """Whitened by the lower triangle of the factor."""
    ctx.save_for_backward(x, scale_tril)
    return torch.linalg.solve_triangular(scale_tril.tril(), x.mT, upper=False)


def solved_right(ctx, g):
    x, factor = ctx.saved_tensors
    lower = factor.tril()
    back = torch.linalg.solve_triangular(lower.mT, g, upper=True)
    y = torch.linalg.solve_triangular(lower, x.mT, upper=False)
    return back.mT, -(back @ y.mT).tril()


def solved_whole(ctx, g):
    of_x, _ = solved_right(ctx, g)
    x, factor = ctx.saved_tensors
    y = torch.linalg.solve_triangular(factor.tril(), x.mT, upper=False)
    return of_x, -of_x.mT @ y.mT


def unprojected(ctx, x, scale_tril):
    """Whitened by the factor."""
    ctx.save_for_backward(x, scale_tril)
    return torch.linalg.solve_triangular(scale_tril, x.mT, upper=False)


def test_a_triangle_that_forward_takes_itself_is_no_demand() -> None:
    assert red(check(op(solved, solved_right))) == []
    assert ("GL401", "scale_tril") in red(check(op(solved, solved_whole)))
    # Without it, triangular factors are what callers pass.
    assert red(check(op(unprojected, solved_whole))) == []


def of_any_matrix(ctx, delta, precision):
    """Squared distances of delta: (n, d); precision: (d, d), not assumed symmetric."""
    return distance(ctx, delta, precision)


def of_a_precision(ctx, delta, precision):
    """Squared distances of delta: (n, d); precision: (d, d)."""
    return distance(ctx, delta, precision)


def of_any_matrix_right(ctx, g):
    delta, matrix = ctx.saved_tensors
    _, outer = distance_right(ctx, g)
    return g[:, None] * (delta @ (matrix + matrix.T)), outer


def test_a_matrix_of_which_documentation_denies_that_it_is_symmetric() -> None:
    assert red(check(op(of_any_matrix, of_any_matrix_right))) == []
    assert red(check(op(of_a_precision, distance_right))) == []
    assert ("GL401", "delta") in red(check(op(of_any_matrix, distance_right)))
