"""Numbers of axes that a docstring or a comment gives."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from gradlint.inputs.documentation import (
    UNIT_LEFT_OUT,
    Range,
    denies_symmetry,
    documented_ball,
    documented_binary,
    documented_binary_labels,
    documented_complex,
    documented_constant,
    documented_dtype,
    documented_ends,
    documented_from_one,
    documented_from_zero,
    documented_interval,
    documented_least,
    documented_no_less,
    documented_nonzero,
    documented_numbers,
    documented_order,
    documented_range,
    documented_real,
    documented_rotation,
    documented_scalar,
    documented_sign,
    documented_words,
    documented_zero_dim,
    prose,
    ranks_in,
    sizes_in_words,
    without_units,
)


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("Distances between the rows of x: (N, D) -> (N, N).", {2}),
        ("Smoothing of (B, T, C), with weights (C, 3).", {2, 3}),
        ("# q, k, v: [batch, heads, T, D]", {4}),
        ("Pools (N, C, L_in) to (N, C, L_in // 2).", {3}),
        ("returns (N, C, 2*L)", {3}),
        ("# x: (N, C, *), weight: (C,)", set()),
        ("softmax of (..., D)", set()),
        ("calls f(X, Y) and g(a, dim)", set()),
        ("a range [0, 1], a pair (1, 2)", set()),
        ("no shapes at all", set()),
    ],
)
def test_ranks_in(text: str, ranks: set[int]) -> None:
    assert ranks_in(text) == ranks


@pytest.mark.parametrize(
    ("text", "name", "domain"),
    [
        ("(diag(d) + U U^T)^-1 b, d > 0 (n,), U (n, r)", "d", "positive"),
        ("by the lemma, d > 0.", "d", "positive"),
        ("densities with `sigma` >= 0", "sigma", "nonnegative"),
        ("x > 0.5 is cut", "x", ""),
        ("where id > 0", "d", ""),
        ("where |x| > 0", "x", ""),
        ("x < 0", "x", ""),
        ("Zero rates at maturities >= 0 (years).", "maturity", "nonnegative"),
        ("Counts of many weights > 0.", "weight", "positive"),
        ("step size > 0", "step_size", "positive"),
        ("Several xs > 0", "x", ""),
        # One case of several, and the only one.
        ("water content at the head h, saturated for h >= 0", "h", ""),
        ("2x if x > 0, else 0", "x", ""),
        ("defined only where x > 0", "x", "positive"),
        ("the logarithm for x > 0", "x", "positive"),
        ("Penalty weight; must satisfy ``0 < lam < eps**2``.", "lam", "positive"),
        ("0 <= tau", "tau", "nonnegative"),
        ("zero where 0 < x < 1", "x", ""),
        ("loss with 10 < width", "width", ""),
        ("Effective number of species from positive abundances (..., S)", "abundance", "positive"),
        ("Takes non-negative counts", "count", "nonnegative"),
        ("the identity for positive x", "x", ""),
        ("sum of positive parts of x", "x", ""),
    ],
)
def test_signs(text: str, name: str, domain: str) -> None:
    assert documented_sign(text, name) == domain


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("periods: d numbers; zero where there is none", True),
        ("periods: list of floats", True),
        ("periods: three numbers", True),
        ("periods: numbers of steps", False),
        ("periods: (N, C) numbers", False),
        ("periods, floats (N, C)", False),
        ("periods in the numbers above", False),
        ("periods: no numbers", False),
    ],
)
def test_numbers(text: str, found: bool) -> None:
    assert documented_numbers(text, "periods", ["x", "periods"]) is found


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("Bounds, ``lower < upper``.", [("lower", "upper")]),
        ("requires upper > lower", [("lower", "upper")]),
        ("where lower < upper, else zero", []),
        ("lower <= upper", []),
        ("lower < upper + 1", []),
        ("the lower one", []),
    ],
)
def test_order_of_two_arguments(text: str, pairs: list[tuple[str, str]]) -> None:
    assert documented_order(text, ["x", "lower", "upper"]) == pairs


@pytest.mark.parametrize(
    ("text", "binary"),
    [
        ("x (N,); y: (N,) in {0, 1}", True),
        ("x (N,), y (N,) float labels, 0 or 1", True),
        ("y is 0/1 for each of x", True),
        ("y: (N, C) tensor of zeros and ones", True),
        ("y: binary targets (N,)", True),
        # Intervals, other arguments, axes, losses, and what is returned.
        ("y: (N,) in [0, 1]", False),
        ("y: (N,) as z; z: (N,) in {0, 1}", False),
        ("y: (N,), summed over axis 0 or 1", False),
        ("y: 0 or 1 dimensions", False),
        ("y: the 0/1 loss", False),
        ("y: (N,), rounded to 0 or 1", False),
        ("y: (N,), returns {0, 1} for each", False),
        ("y: 0 or 1.5", False),
        ("y: in {0, 1, 2}", False),
    ],
)
def test_documented_binary(text: str, binary: bool) -> None:
    assert documented_binary(text, "y", ["x", "y", "z"]) == binary


@pytest.mark.parametrize(
    ("text", "names", "labels"),
    [
        ("A loss for labels in {0, 1}.", ["logits", "target"], "target"),
        ("Cross entropy of binary targets.", ["logits", "y"], "y"),
        ("A loss for labels in {0, 1}.", ["logits", "weight"], ""),
        ("A loss for labels in {0, 1}.", ["target", "soft_target"], ""),
        ("A loss for labels in [0, 1].", ["logits", "target"], ""),
        ("A loss of labels that are smoothed.", ["logits", "target"], ""),
    ],
)
def test_documented_binary_labels(text: str, names: list[str], labels: str) -> None:
    assert documented_binary_labels(text, names) == labels


@pytest.mark.parametrize(
    ("text", "name", "nonzero"),
    [
        ("Rotates v (N, 3) by q (N, 4) = (w, x, y, z); any q but 0 will do.", "q", True),
        ("Rotates v (N, 3) by q (N, 4) = (w, x, y, z); any q but 0 will do.", "v", False),
        ("reflects x at the plane of n != 0", "n", True),
        ("about a non-zero axis", "axis", True),
        ("axis (3,) must not be zero", "axis", True),
        ("axis: (3,), nonzero", "axis", True),
        ("q is not 0.5 there", "q", False),
        ("returns 0 where q is zero", "q", False),
        ("the gradient of q is zero; any other q will do", "q", False),
        ("the non-zero elements of q", "q", False),
    ],
)
def test_nonzero(text: str, name: str, nonzero: bool) -> None:
    assert documented_nonzero(text, name) == nonzero


@pytest.mark.parametrize(
    ("text", "name", "ball"),
    [
        ("Distance of points u and v (N, d) inside the unit ball.", "u", True),
        ("Distance of points u and v (N, d) inside the unit ball.", "v", True),
        ("x: (N, d), points of the Poincaré ball", "x", True),
        ("v (N, d), a tangent vector; x (N, d) in the open unit disk", "x", True),
        ("v (N, d), a tangent vector; x (N, d) in the open unit disk", "v", False),
        ("poles: (B, 2), norm below 1", "poles", True),
        ("weights: (N, d) with norms < 1", "weights", True),
        ("x: (N, d), norm < 1.5", "x", False),
        ("x: (N, d), projected onto the unit ball", "x", False),
        ("x: (N, d), points outside the unit ball", "x", False),
        ("x: (N, d), unit vectors", "x", False),
    ],
)
def test_balls(text: str, name: str, ball: bool) -> None:
    assert documented_ball(text, name, ("x", "u", "v", "poles", "weights")) == ball


@pytest.mark.parametrize(
    ("text", "name", "scalar"),
    [
        ("points (N, 3) about a unit axis (3,) by an angle (0-d)", "angle", True),
        ("points (N, 3) about a unit axis (3,) by an angle (0-d)", "axis", False),
        ("df and scale are 0-d tensors", "df", True),
        ("row: (n,) measurement row, df: () variance > 0", "df", True),
        ("row: (n,) measurement row, df: () variance > 0", "row", False),
        ("calls df() and row()", "df", False),
        ("half_life a 0-d tensor", "half_life", True),
        ("x (B, T) with scalar attack and release coefficients", "attack", True),
        ("x (B, T) with scalar attack and release coefficients", "release", True),
        ("a scalar function of the energy x", "x", False),
        ("a learned temperature, returns a scalar", "temperature", False),
        ("times t (N,), the others scalars", "release", True),
        ("times t (N,), the others scalars", "t", False),
        ("other arguments are 0-dim; t (N,)", "release", True),
        ("the others share a scalar product", "release", False),
    ],
)
def test_scalars(text: str, name: str, scalar: bool) -> None:
    assert documented_scalar(text, name) == scalar


@pytest.mark.parametrize(
    ("text", "real", "only_complex"),
    [
        ("Full spectrum of a real signal (..., n).", True, False),
        ("Real-valued filter by FFT.", True, False),
        ("Multiplies a complex spectrum z by a real gain w.", False, False),
        ("The exponential of a real or complex number.", False, False),
        ("Product of complex spectra.", False, True),
        ("Takes the real part of z.", False, False),
        ("really fast", False, False),
    ],
)
def test_real_and_complex(text: str, real: bool, only_complex: bool) -> None:
    assert (documented_real(text), documented_complex(text)) == (real, only_complex)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("emissions (B, T, K), lengths (B,) in 1..T", True),
        ("lengths are between 1 and T", True),
        ("`lengths` >= 1", True),
        ("lengths > 0", True),
        ("lengths: (B,) integers, 1 <= lengths <= T", True),
        ("lengths (B,) long, 1 <= length <= T", True),
        ("lengths (B,) long, 0 <= length <= T", False),
        ("0 < `lengths` ≤ T", True),
        ("0 <= lengths <= T", False),
        ("1 <= lengths_of_words <= T", False),
        ("-1 <= lengths <= T", False),
        ("T - 1 <= lengths <= T", False),
        ("lengths (B,) in 0..T", False),
        ("lengths in 10..T", False),
        ("lengths of 1 or more sequences", False),
        ("x in 1..T, lengths (B,)", False),
    ],
)
def test_integers_that_begin_at_one(text: str, expected: bool) -> None:
    assert documented_from_one(text, "lengths") is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A (N, N) sub-stochastic, 0 < alpha < 1.", Range(0, 1)),
        ("0 <= alpha < 1e3", Range(0, 1000, low_too=True)),
        ("alpha: float in (0, 1], the damping", Range(0, 1, high_too=True)),
        ("alpha (float): between 0 and 1", Range(0, 1, True, True)),
        ("needs `alpha` >= 2", Range(low=2, low_too=True)),
        ("alpha < 0.5", Range(high=0.5)),
        ("alpha: a positive rate", Range(low=0)),
        ("alpha: non-negative", Range(low=0, low_too=True)),
        ("alpha scales x, which is positive; beta in (0, 1)", None),
        ("beta in (0, 1), alpha any", None),
        ("2 * alpha < x", None),
        ("x where x > alpha, alpha * x elsewhere", None),
        ("decay of alpha from step to step", None),
    ],
)
def test_ranges_of_numbers(text: str, expected: Range | None) -> None:
    assert documented_range(text, "alpha", ["x", "alpha", "beta"]) == expected


def test_numbers_inside_of_a_range() -> None:
    unit = Range(0, 1, high_too=True)
    assert [value in unit for value in (0, 0.5, 1, 1.5, True, "mean")] == [
        *(False, True, True, False, True, True)
    ]
    assert unit.inside(0.85) == 0.425
    assert Range(low=0).inside(3.0) == 1.5
    assert Range(high=2).inside(1.0) == 1.5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("idx: (B,) integers, 0 <= idx < num", True),
        ("0 ≤ `idx` < num", True),
        ("-10 <= idx < num", False),
        ("n - 0 <= idx", False),
        ("0 <= idx_of_row < num", False),
        ("idx <= 0", False),
    ],
)
def test_integers_that_begin_at_zero(text: str, expected: bool) -> None:
    assert documented_from_zero(text, "idx") is expected


@pytest.mark.parametrize(
    ("text", "constant"),
    [
        ("forward(x, gain): both (N, L); gain non-negative, taken as a constant.", True),
        ("gain: weights (N,), treated as constant", True),
        ("No gradient flows to gain.", True),
        ("gain gets no gradient", True),
        ("x and gain are (N, L); gain is not differentiated", True),
        ("The gain will never require grad so we return None for it.", True),
        ("gain must not require a gradient", True),
        ("The gain (N,) is a constant. x is not", True),
        ("x (N, L), gain (L,), not learned -> (N, L)", True),
        ("gain: (L,), learned; x is not trained", False),
        ("gain {torch.tensor} -- 1 for events, a label without gradient.", True),
        ("gain: (N,) dates, not differentiated", True),
        ("gain: lengths of the periods (dates, not differentiated).", True),
        ("gain (T,); kernel not differentiated twice", False),
        ("gain is a constant times two", False),
        ("None where gain does not require grad", False),
        ("x will never require grad; gain: (N,)", False),
        ("gain: a constant (per head)", False),
        ("gain: not taken as a constant", False),
        ("gain: scaled by a constant", False),
        ("gain: (N,), x is taken as a constant", False),
        ("gain: constant along each row", False),
        ("x has no gradient at zero. gain: (N,)", False),
    ],
)
def test_documented_constant(text: str, constant: bool) -> None:
    assert documented_constant(text, "gain", ["x", "gain"]) == constant


@pytest.mark.parametrize(
    ("text", "name", "domain"),
    [
        ("mu: (cells, genes) > 0; theta: (genes,) or (cells, genes), > 0.", "theta", "positive"),
        ("mu: (cells, genes) > 0; theta: (genes,) or (cells, genes), > 0.", "mu", "positive"),
        ("mu: (N,); theta: (N,), all entries > 0", "mu", ""),
        ("mu, theta: (N,), each >= 0", "mu", "nonnegative"),
        ("theta: (N,), entries where mask > 0 count", "theta", ""),
        ("theta: (N,), > 0.5", "theta", ""),
    ],
)
def test_signs_behind_shapes(text: str, name: str, domain: str) -> None:
    assert documented_sign(text, name, ["mu", "theta"]) == domain


@pytest.mark.parametrize(
    ("text", "name", "scalar"),
    [
        ("error: (B, T); kp, ki: scalar tensors; dt: step", "kp", True),
        ("error: (B, T); kp, ki: scalar tensors; dt: step", "ki", True),
        ("error: (B, T); kp, ki: scalar tensors; dt: step", "error", False),
        ("kp: positive scalar tensor", "kp", True),
        ("kp: 0-dim tensor, not zero", "kp", True),
        ("ki: a zero-dimensional tensor", "ki", True),
        ("kp: 0-dim or (B,)", "kp", False),
        ("kp: scalar or (B,)", "kp", False),
        ("kp: (B, T), multiplied by a scalar", "kp", False),
        ("kp: one scalar per row", "kp", False),
        ("error : Tensor (T,)\nkp, ki : Tensor, 0-dim\n    Gains (> 0)", "kp", True),
        ("error : Tensor (T,)\nkp, ki : Tensor, 0-dim\n    Gains (> 0)", "ki", True),
        (":param kp: step size, 0-dim tensor\n:param int ki: number", "kp", True),
        (":param kp: step size, 0-dim tensor\n:param int ki: number", "ki", False),
        ("kp: prior variance of weights, positive, 0-dim.", "kp", True),
        ("kp: (B, T), 0-dim", "kp", False),
        ("kp: gains, 0-dim or (B,)", "kp", False),
    ],
)
def test_scalars_of_lists(text: str, name: str, scalar: bool) -> None:
    assert documented_scalar(text, name, ["error", "kp", "ki", "dt"]) == scalar


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("precision: (d, d), not assumed symmetric", True),
        ("`precision` need not be symmetric.", True),
        ("precision (Tensor): a non-symmetric matrix", True),
        ("precision: a general square matrix", True),
        ("precision: [B, N, N], weighted, may be directed", True),
        ("precision: [B, N, N] of an undirected graph", False),
        ("precision: (d, d), symmetric", False),
        ("precision: a symmetric matrix, not its factor", False),
        ("precision: (d, d)\nother: not assumed symmetric", False),
    ],
)  # fmt: skip
def test_denied_symmetry(text: str, denied: bool) -> None:
    assert denies_symmetry(text, "precision") is denied


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("Closest rotation to a batch of 3x3 matrices (Procrustes).", {(3, 3)}),
        ("R: one 3 x 3 rotation matrix per point", {(3, 3)}),
        ("a 2×4 matrix", {(2, 4)}),
        ("4-by-4 homogeneous matrices", {(4, 4)}),
        ("Rotates 3-vectors, or 3D points.", {(3,)}),
        ("3-dimensional vectors", {(3,)}),
        ("a 3x3 convolution over matrices", set()),
        ("a 3x3 kernel", set()),
        ("between 2 points", set()),
        ("the distance of 2 vectors", set()),
        ("n x n matrices", set()),
    ],
)  # fmt: skip
def test_sizes_in_words(text: str, sizes: set[tuple[int, ...]]) -> None:
    assert sizes_in_words(text) == sizes


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("defocus [A], angle [rad]: 0-dim", "defocus, angle: 0-dim"),
        ("rate [1/s], k [1/A^2], v [m/s]", "rate, k, v"),
        ("x [B, T], w [batch, 3]", "x [B, T], w [batch, 3]"),
        ("values in [0, 1], w [B]", "values in [0, 1], w [B]"),
    ],
)
def test_units(text: str, without: str) -> None:
    assert without_units(text).replace(UNIT_LEFT_OUT, "") == without


def test_what_has_its_own_unit_does_not_share_a_range():
    text, names = without_units("Mixing: t [degC], p [hPa], rh in [0, 1]."), ["t", "p", "rh"]
    found = {name: documented_interval(text, name, names) for name in names}
    assert found == {"t": "", "p": "", "rh": "unit"}
    assert documented_interval("t, p, rh in [0, 1]", "t", names) == "unit"


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("t >= 0 (N,), rate k and exponent n >= 1 scalars", "above"),
        ("order n > 1.0", "above"),
        ("zero where n >= 1", ""),
        ("n >= 12", ""),
        ("n >= 1.5", ""),
    ],
)
def test_documented_as_above_one(text: str, domain: str) -> None:
    assert documented_interval(text, "n", ["t", "k", "n"]) == domain


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("q (..., n) death probabilities in [0, 1] (1 at the end)", {0.0, 1.0}),
        ("q: shares in [0, 1)", {0.0}),
        ("q: shares in (0, 1)", set()),
        ("q >= 0 (N,), a rate", {0.0}),
        ("q > 0 (N,), a rate", set()),
        ("q lies between 0 and 1", set()),
        ("rates q; w in [0, 1]", set()),
        ("volume w, widths q (K,) -> (B, K) in [0, 1]", set()),
    ],
)
def test_documented_ends(text: str, ends: set[float]) -> None:
    assert documented_ends(text, "q", ["q", "w"]) == ends


def test_what_is_compared_with_an_argument_does_not_list_it():
    text = "wave (L,), pitch in the units of wave, orders (M,) long"
    names = ["wave", "pitch", "orders"]
    assert documented_dtype(text, "wave", names) == ""
    assert documented_dtype(text, "orders", names) == "index"
    assert documented_dtype("layout (H, N / b, N / b) bool", "layout", ["layout"]) == "mask"
    assert documented_dtype("(..., V) logits, keep (...) bool", "keep", ["keep"]) == "mask"


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("t, rate: 0-dim, x (B, T)", "t", True),
        ("t, rate: 0-dim, x (B, T)", "rate", True),
        ("t, rate: 0-dim, x (B, T)", "x", False),
        ("rate: scalar values (B,), t: zero-dimensional", "rate", False),
        ("rate: 0-dim or (B,)", "rate", False),
    ],
)
def test_zero_dim_before_a_shape(text: str, name: str, found: bool) -> None:
    assert documented_zero_dim(text, name, ["x", "t", "rate"]) == found


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("angle between rotations R1 and R2 (N, 3, 3)", "R1", True),
        ("angle between rotations R1 and R2 (N, 3, 3)", "R2", True),
        ("R: (3, 3) rotation, t: (3,)", "R", True),
        ("R: (3, 3) rotation, t: (3,)", "t", False),
        ("rotates x by R (3, 3)", "x", False),
        ("rotation angle theta (N,)", "theta", False),
    ],
)
def test_rotations(text: str, name: str, found: bool) -> None:
    assert documented_rotation(text, name) == found


def test_words_that_stand_beside_one():
    said = """layout "oi": (out, in) as in nn.Linear; "io": (in, out).

    reduction: one of `mean`, 'sum' and ``none``."""
    assert documented_words(said, "io") == ["oi"]
    assert documented_words(said, "sum") == ["mean", "none"]
    assert documented_words(said, "max") == []
    assert documented_words("mean over the batch, or sum", "mean") == []


def test_integers_are_those_of_the_argument_beside_which_they_stand() -> None:
    text = "Quantises x (C, N) with scale (C, 1) and integer zero point (C, 1)."
    names = ["x", "scale", "zero_point"]
    assert [documented_dtype(text, name, names) for name in names] == [""] * 3
    assert documented_dtype("bins (C, 1) int64 and scale (C, 1)", "bins", ["bins"]) == "index"


def test_the_next_line_is_about_others():
    text = "p1: (N, P, D)\np2: (N, Q, D)\nlengths1, lengths2: LongTensor (N,)"
    names = ["p1", "p2", "lengths1", "lengths2"]
    assert documented_dtype(text, "p2", names) == ""
    assert documented_dtype("hits: (N, C)\n    int64 successes", "hits", ["hits"]) == "index"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("likelihood of counts (int64) with mean mu", "index"),
        ("counts: int32, any shape", "index"),
        ("counts (bool)", ""),
        ("counts (int)", ""),
        ("counts (N, 64)", ""),
        ("counts (float64)", ""),
    ],
)
def test_a_dtype_at_once(text: str, expected: str) -> None:
    assert documented_dtype(text, "counts", ["counts", "mu"]) == expected


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("weight like logits; all but logits are data.", "weight", True),
        ("weight like logits; all but logits are data.", "logits", False),
        ("Everything except `x` and `w` is constant.", "w", False),
        ("Everything except `x` and `w` is constant.", "mask", True),
        ("All but the last axis are summed", "mask", False),
    ],
)
def test_all_arguments_but_some_are_constants(text: str, name: str, said: bool):
    assert documented_constant(text, name, ["logits", "weight", "x", "w", "mask"]) is said


def test_lengths_that_are_one_at_least():
    assert documented_from_one("lengths  B  every length >= 1", "lengths")
    assert documented_from_one("lengths: (B,), at least 1. -> (B,)", "lengths")
    assert documented_from_one("lengths must be at least one", "lengths")
    assert not documented_from_one("lengths: (B,), at least 10", "lengths")
    assert not documented_from_one("lengths  B  every length >= 0", "lengths")
    assert not documented_from_one("lengths  B  every width >= 1", "lengths")


@pytest.mark.parametrize(
    ("text", "axis", "least"),
    [
        ("series (batch, time, channels), time > 1.", "time", 2),
        ("x (N, T), T >= 3", "T", 3),
        ("with 2 <= n", "n", 2),
        ("at least two frames", "frames", 2),
        ("rate > 0.5 in x (T,)", "T", 0),
        ("runtime > 1", "time", 0),
        ("time > 1.5 s", "time", 0),
    ],
)
def test_least_sizes(text: str, axis: str, least: int) -> None:
    assert documented_least(text, axis) == least


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A (m, n), m >= n of full rank", True),
        ("A (m, n) with n ≤ m", True),
        ("A (m, n) with n < m", True),
        ("A (m, n) with m <= n", False),
        ("A (m, n), k.m >= n", False),
        ("A (m, n), m >= n.max()", False),
        ("A (m, n), m >= 2", False),
    ],
)
def test_axes_no_shorter_than_others(text: str, said: bool) -> None:
    assert documented_no_less(text, "m", "n") is said


ALONE = '''"""Fixed points; W should be a contraction."""
import torch

# of one operator

# below rounding, iterations end
class Fixed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, W):
        return x
'''
SECOND = """

class Other(torch.autograd.Function):
    pass
"""


@pytest.mark.parametrize(("source", "said"), [(ALONE, True), (ALONE + SECOND, False)])
def test_the_docstring_of_a_file_is_that_of_its_only_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, said: bool
) -> None:
    (tmp_path / "fixed_points.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "fixed_points", raising=False)
    text = prose(importlib.import_module("fixed_points").Fixed)
    assert ("contraction" in text) is said
    assert "iterations end" in text
    assert "one operator" not in text
