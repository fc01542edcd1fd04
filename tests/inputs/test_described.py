"""What docstrings and comments say of each argument."""

from __future__ import annotations

import pytest
import torch

from gradlint.inputs._gather import gather
from gradlint.inputs._infer import infer
from gradlint.inputs.described import (
    arguments_in,
    axes_in_words,
    jaxtyped,
    shape_before_arrow,
    shape_of_all,
    shapes_in_order,
)
from gradlint.inputs.documentation import documented_sign, prose
from gradlint.inputs.domains import of_quantity, worded
from gradlint.targets.load import from_object

#: Text and what it says: argument → axes.
SAID = {
    "name and shape": ("pos (N, 3) of particles", {"pos": ("N", "=3")}),
    "several in one sentence": (
        "Energy of pairs (P, 2) of particles at pos (N, 3); far ones are skipped.",
        {"pairs": ("P", "=2"), "pos": ("N", "=3")},
    ),
    "entries": (
        "Args:\n    x (torch.Tensor): input, (B, T, D)\n    lengths (LongTensor): steps of each"
        " row (B,)\n    w: ``(N, C, *)`` weights",
        {"x": ("B", "T", "D"), "lengths": ("B",), "w": ("N", "C", "*")},
    ),
    "NumPy": (
        "Parameters\n----------\nx : Tensor\n    Input of shape (N, D).\nw : (D,) array\n"
        "\nReturns\n-------\nTensor (N, K)",
        {"x": ("N", "D"), "w": ("D",)},
    ),
    "Sphinx": (
        ":param x: points, N x 3\n:param torch.Tensor w: B×N×3\n:returns: (N, 7)",
        {"x": ("N", "=3"), "w": ("B", "N", "=3")},
    ),
    "square brackets": ("x of size [batch, seq_len, dim]", {"x": ("batch", "seq_len", "dim")}),
    "any number of axes": ("Rotate v (..., 3) by unit q (..., 4)", {"v": ("...", "=3")}),
    "any number, with a name": (
        "x: (*batch, n, n)\nw (B, C, *spatial) and v (*B, 3)",
        {"x": ("...", "n", "n"), "w": ("B", "C", "..."), "v": ("...", "=3")},
    ),
    "shared": ("q/k (B, H, T, D); w, v and u (B,)", {"k": ("B", "H", "T", "D"), "w": ("B",)}),
    "in words": ("optional key mask (B, S)", {"key_mask": ("B", "S")}),
    "short for a noun": ("unit quaternions (N, 4), sorted", {"quat": ("N", "=4")}),
    "expressions": ("x (batch, q * t), w (2w+1, n)", {"x": ("batch", "q*t"), "w": ("2w+1", "n")}),
    "powers": ("w [2**k] points, x (batch, 2^k)", {"w": ("2**k",), "x": ("batch", "2**k")}),
    "names of several words": (
        "x: ``(batch, max seq length, max target length + 1)``\nw: `(max target length,)`",
        {"x": ("batch", "msl", "mtl+1")},
    ),
    "with a remark": (
        "sampled at pos + weight (K, 2; y before x)",
        {"pos": ("K", "=2"), "weight": ("K", "=2")},
    ),
    "behind an inequality": ("d > 0 (n,)", {"d": ("n",)}),
    "of another": (
        "probs: (N, C)\ntarget: one-hot, with the shape of ``probs``",
        {"probs": ("N", "C"), "target": ("N", "C")},
    ),
    "annotation": ('x: Float[Tensor, "b t 3"]', {"x": ("b", "t", "=3")}),
}

#: Near misses: shapes of other things, values and ranges.
UNSAID = {
    "result": "maps x to (N, K)",
    "arrow": "x -> (N, K)",
    "reshaped": "x: flattened to (B*N, D)",
    "another name": "x scaled by weight (C,)",
    "axes": "the sum of x over (N, C)",
    "range": "x in [0, N)",
    "range of integers": "x: labels in [1, K]",
    "interval": "the values x (0, 1)",
    "value": "with size = (3, 4) and x = (2, 5) in mind",
    "place": "pixel x (i, j)",
    "coordinates": "x: (fx, fy, cx, cy), of a camera",
    "corners": "boxes x (x1, y1, x2, y2)",
    "coefficients": "x: (k1, k2, p1, p2) or None",
    "call": "f(x) and x(7, N)",
    "remark alone": "x (K; the number of rows)",
    "pair of arguments": "x (q, k) attention",
    "sentence": "Normalises x. Takes (N, C) only in tests",
    "product": "A x B",
    "its norm": "the norm of x is (N,)",
    "arguments": "x (*args, **kwargs)",
    "arguments alone": "x (*args)",
    "default": "x (default: (3, 3))",
    "formula": "x (2**k) / n",
    "type": "x (Tensor, optional)",
}
NAMES = ("x", "w", "q", "k", "v", "u", "pos", "pairs", "lengths", "key_mask", "quat", "d", "probs")
NAMES = (*NAMES, "target", "weight")


@pytest.mark.parametrize("name", SAID)
def test_shapes_of_arguments(name: str) -> None:
    text, expected = SAID[name]
    found = arguments_in(text, NAMES)
    assert {key: found[key].axes for key in expected} == expected


@pytest.mark.parametrize("name", UNSAID)
def test_near_misses(name: str) -> None:
    found = arguments_in(UNSAID[name], NAMES)
    assert "x" not in found or found["x"].axes == ()


def test_a_second_form_and_the_number_of_axes() -> None:
    item = arguments_in("w : (N,) or (N, K) array", ["w"])["w"]
    assert (item.axes, item.other, item.rank) == (("N",), ("N", "K"), 1)
    assert arguments_in("x (..., D)", ["x"])["x"].rank is None


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("price, spot and tau of one shape.", ("price", "spot", "tau")),
        ("0 <= tau < 1; spot and tau of equal shape", ("spot", "tau")),
        ("price: residuals, tau: scale, all the same shape", ("price", "tau")),
        ("tau: same shape as price", ("price", "tau")),
        ("price of one shape or another; tau of any shape", ()),
        ("the result has the same shape", ()),
    ],
)
def test_one_shape_is_said(text: str, group: tuple[str, ...]) -> None:
    found = arguments_in(text, ["price", "spot", "tau"])
    assert {name for name, item in found.items() if item.like} == set(group)


def test_shapes_in_order() -> None:
    text = "-mu * sum over waypoints (T, d) and spheres (K, d), (K,)."
    assert shapes_in_order(text, 3) == [("T", "d"), ("K", "d"), ("K",)]
    assert shapes_in_order(text, 2) == []
    assert shapes_in_order("Rotate vectors (N, 3) by quaternions (N, 4)", 2) == []
    assert shapes_in_order("Pools (N, C) -> (N, K)", 2) == []
    text = "v -> q v q* for q = (w, x, y, z), shapes (N, 4) and (N, 3).  |q| scales the result"
    assert shapes_in_order(text, 2) == [("N", "=4"), ("N", "=3")]
    assert shapes_in_order("v -> q v q*, shapes (N, 4) -> (N, 3)", 2) == []


def test_axes_of_annotations() -> None:
    assert jaxtyped('Float[Tensor, "*batch n=3 #c"]') == ("...", "=3", "c")
    assert jaxtyped("Optional[Tensor]") == ()
    assert axes_in_words("b 3 ...") == ("b", "=3", "...")


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("x: non-negative weights", "positive"),
        ("positive distances x (N,)", "positive"),
        ("x: non-positive", ""),
        ("x (n, n), not necessarily symmetric", ""),
        ("x: an SPD matrix", "spd"),
        ("a Hurwitz x (n, n)", "nsd"),
        ("x sorted ascending", "ordered"),
        ("x: unsorted values", ""),
        ("unit vectors x (N, 3)", "lengths"),
        ("one-hot labels x", "rows"),
        ("x in [0, 1)", "unit"),
        ("0 <= x < 1", "unit"),
        ("x: uses the upper triangle", ""),
        ("x: column sub-stochastic", "contraction"),
        ("covariance = x x^T", ""),
        ("x, and a symmetric w", ""),
    ],
)
def test_domains(text: str, domain: str) -> None:
    item = arguments_in(text, ["x", "w"]).get("x")
    assert (worded(item.words) if item else [])[:1] == ([domain] if domain else [])


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("x: (P,) distances.", "positive"),
        ("x (P,): pairwise distances between atoms", "positive"),
        ("x: volatility of the asset, per year", "positive"),
        ("x: particle masses (N,)", "positive"),
        ("x: (B, H, W) signed distances", ""),
        ("x: log variances", ""),
        ("x: logarithm of the temperature", ""),
        ("x: features that distances are taken of", ""),
        ("x: coordinates; w: masses", ""),
    ],
)
def test_quantities_that_are_positive(text: str, domain: str) -> None:
    item = arguments_in(text, ["x", "w"])["x"]
    assert of_quantity(item.words) == domain


def test_adjectives_go_with_a_list() -> None:
    names = ["image", "coils", "mask"]
    found = arguments_in("complex image (B, H), coils (C, H) -> k-space (B, C, H)", names)
    assert "complex" in found["image"].words
    assert "complex" in found["coils"].words
    found = arguments_in("complex image (B, H), real coils (C, H)", names)
    assert "complex" not in found["coils"].words
    found = arguments_in("image (B, H) complex, coils (C, H), mask (H,)", names)
    assert "complex" in found["image"].words
    assert "complex" not in found["coils"].words


@pytest.mark.parametrize(
    ("text", "axes"),
    [
        ("x (N, C), w (O, C, k, k); odd k", ("O", "C", "2*k+1", "2*k+1")),
        ("x (N, C), w (C, k), where k must be odd.", ("C", "2*k+1")),
        ("x (N, D), w (D,), D even", ("2*D",)),
        ("x (N, C), w (C, 2k+1); odd k", ("C", "2k+1")),
        ("x (N, C), w (C, k) for odd rows of x", ("C", "k")),
        ("x (n, c), w (n, c')", ("n", "c_prime")),
        ("x (n, c), w: one of ('a', 'c')", ()),
    ],
)
def test_odd_and_even_sizes_and_primes(text: str, axes: tuple[str, ...]) -> None:
    found = arguments_in(text, ["x", "w"])
    assert (found["w"].axes if "w" in found else ()) == axes


def test_what_is_returned_shares_no_shape_with_the_last_argument():
    text = "counts (..., L, 4), pseudo scalar -> odds, same shape as counts"
    found = arguments_in(text, ["counts", "pseudo"])
    assert not found["pseudo"].axes
    assert not found["pseudo"].like


@pytest.mark.parametrize(
    ("text", "axes"),
    [
        ("Messages v_j added up at i. All (N, C); edge_index (2, E), j -> i.", ("N", "C")),
        ("Losses, all of shape (B, T).", ("B", "T")),
        ("All inputs are (B, T, D)", ("B", "T", "D")),
        ("Sums over all (N, C) elements", ()),
        ("All rows of x (N, C) are scaled", ()),
    ],
)
def test_the_shape_of_all(text: str, axes: tuple[str, ...]) -> None:
    assert shape_of_all(text) == axes


def test_the_only_shape_before_an_arrow():
    assert shape_before_arrow("Gate: timestamps (batch, 1) -> (batch, hidden)") == ("batch", "=1")
    assert shape_before_arrow("a (N, 3) and b (N, 3) -> (N,)") == ()
    assert shape_before_arrow("timestamps (batch, 1), to hidden") == ()


def test_an_inequality_of_a_list() -> None:
    text = "European call. spot, vol, tau > 0, broadcast; the rate is free."
    assert [documented_sign(text, name) for name in ("spot", "vol", "tau")] == ["positive"] * 3
    assert documented_sign("solves A x = b, d > 0", "b") == ""


def test_a_number_just_below_zero_or_a_word_between_commas() -> None:
    names = ["x", "delay"]
    for text in ("The branch of W for x > -1/e.", "x >= -1", "log1p, x: (N,), > -0.5"):
        assert documented_sign(text, "x", names) == "nonnegative", text  # zero is above it, too
    text = "x (B, C, T), delay (C,) in samples, not negative"
    assert [documented_sign(text, name, names) for name in names] == ["", "nonnegative"]
    assert documented_sign("delay (C,), positive", "delay", names) == "positive"
    for text in ("x > -10", "x > -1.5", "x (N,), positive at the end of a row", "x > -1e3"):
        assert documented_sign(text, "x", names) == "", text


def test_comments_at_the_ends_of_lines_of_a_signature() -> None:
    def forward(
        ctx,
        x,  # (B, T, D)
        w=None,  # (D,), positive
    ):
        h = x  # (N, M)
        return h

    found = arguments_in(prose(forward), ["x", "w"])
    assert found["x"].axes == ("B", "T", "D")
    assert found["w"].axes == ("D",)
    assert worded(found["w"].words) == ["positive"]


class Barrier(torch.autograd.Function):
    """-sum log(|x - c|^2 - r^2) over waypoints (T, d) and spheres (K, d), (K,)."""

    @staticmethod
    def forward(ctx, x, centers, radii):
        gap = (x[:, None] - centers).square().sum(-1) - radii.square()
        if not bool((gap > 0).all()):
            raise ValueError("a waypoint is inside an obstacle")
        ctx.save_for_backward(x, centers, radii)
        return -gap.log().sum()

    @staticmethod
    def backward(ctx, g):
        x, c, r = ctx.saved_tensors
        diff = x[:, None] - c
        w = -g / (diff.square().sum(-1) - r.square())
        of_gap = 2 * w[..., None] * diff
        return of_gap.sum(1), -of_gap.sum(0), -2 * r * w.sum(0)


def test_inference_takes_documented_shapes() -> None:
    x, centers, radii = infer(from_object(Barrier), 0)[0].args
    assert x.shape[1] == centers.shape[1]
    assert radii.shape == centers.shape[:1]


def test_one_shape_without_symbols_is_inferred() -> None:
    class Ratio(torch.autograd.Function):
        """log(price / spot); price and spot of one shape."""

        @staticmethod
        def forward(ctx, price, spot):
            return price - spot

        @staticmethod
        def backward(ctx, g):
            return g, -g

    price, spot = gather(from_object(Ratio))
    assert price.shape == spot.shape
    assert len(price.shape) == 2


def test_what_something_is_brought_onto_is_said_of_the_result():
    said = arguments_in("Projection of every row of raw scores onto the simplex.", ["raw"])
    assert "simplex" not in said["raw"].words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Args:\n    x: values, (N, C)\n    counts: int64, same shape; some are left out",
            ("N", "C"),
        ),
        ("Args:\n    x: values, (N, C)\n    counts: int64, same shape (as a matrix)", ("N", "C")),
        ("Args:\n    x: values, (N, C)\n    counts: integers of the same size.", ("N", "C")),
        ("Args:\n    x: values, (N, C)\n    counts: same shape as x", ("N", "C")),
        ("Args:\n    x: values, (N, C)\n    counts: (N,), same shape", ("N",)),
        ("Args:\n    x: values, (N, C)\n    counts: not of the same shape", ()),
        ("Args:\n    x: values, (N, C)\n    counts: same shape as the output", ()),
        ("Args:\n    counts: same shape\n    x: values, (N, C)", ()),
    ],
)
def test_the_same_shape(text: str, expected: tuple[str, ...]) -> None:
    assert arguments_in(text, ["x", "counts"])["counts"].axes == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("forward(scores, gains): both (..., L); gains non-negative", ("...", "L")),
        ("``forward(scores, gains)``: both of shape (N, L).", ("N", "L")),
        ("forward(scores, gains): all (N, L).", ("N", "L")),
        ("forward(scores, gains): both give rows (N, L).", ()),
        ("forward(scores, other): both (N, L).", ()),
    ],
)
def test_both_arguments_of_a_call(text: str, expected: tuple[str, ...]) -> None:
    said = arguments_in(text, ["scores", "gains"])
    assert [said[name].axes if name in said else () for name in ("scores", "gains")] == [
        expected,
        expected,
    ]


def test_integers_of_the_same_shape_are_inferred() -> None:
    class Poisson(torch.autograd.Function):
        """Log-likelihood of counts.

        Args:
            log_rate: (N, C)
            counts: int64, same shape
        """

        @staticmethod
        def forward(ctx, log_rate, counts):
            ctx.save_for_backward(log_rate, counts)
            return counts * log_rate - log_rate.exp()

        @staticmethod
        def backward(ctx, g):
            log_rate, counts = ctx.saved_tensors
            return g * (counts - log_rate.exp()), None

    log_rate, counts = infer(from_object(Poisson), 0)[0].args
    assert log_rate.dim() == 2
    assert counts.shape == log_rate.shape
    assert counts.dtype == torch.int64


def test_integers_have_the_shape_that_others_were_given() -> None:
    class ZeroInflated(torch.autograd.Function):
        """Log-likelihood of counts with holes.

        Args:
            log_rate: log of the rate
            logit: log odds of a zero, same shape
            counts: int64, same shape; negative ones are left out
        """

        @staticmethod
        def forward(ctx, log_rate, logit, counts):
            return counts * log_rate - logit

        @staticmethod
        def backward(ctx, g):
            return g, -g, None

    log_rate, logit, counts = gather(from_object(ZeroInflated))
    assert log_rate.shape == logit.shape == counts.shape
    assert len(counts.shape) == 2


def test_entries_that_share_a_line_are_apart() -> None:
    names = ["price", "flows", "times"]
    for between in ("; ", ", "):
        line = between.join(("price: (B,)", "flows: (B, T) of any sign", "times: (T,), positive"))
        found = arguments_in(f"Yields.\n\n    {line}\n    Returns the yields, sorted.\n", names)
        assert [found[name].axes for name in names] == [("B",), ("B", "T"), ("T",)]
        assert "positive" in found["times"].words
        assert not any("positive" in found[name].words for name in names[:2])
        assert not any("sorted" in found[name].words for name in names)


def test_an_argument_that_is_mentioned_begins_no_entry() -> None:
    names = ["price", "flows"]
    found = arguments_in("price: that of all flows, above zero; positive", names)
    assert "positive" in found["price"].words
    assert "positive" not in found["flows"].words


def test_names_with_shapes_share_what_is_said_of_them() -> None:
    names = ["cost", "a", "b"]
    text = "cost (B, n, m)\n\n    a (B, n), b (B, m): positive weights summing to one, or None."
    found = arguments_in(text, names)
    assert [found[name].axes for name in names] == [("B", "n", "m"), ("B", "n"), ("B", "m")]
    assert "summing to one" in found["a"].words
    assert "summing to one" in found["b"].words
    assert "positive" not in found["cost"].words
    found = arguments_in("x, y (Tensor): points (N, 3)", ["x", "y"])
    assert [found[name].axes for name in "xy"] == [("N", "=3"), ("N", "=3")]


def test_axes_most_of_which_are_known_words() -> None:
    found = arguments_in("emissions (batch, time, tags), mask (batch, time)", ["emissions", "mask"])
    assert found["emissions"].axes == ("batch", "time", "tags")
    assert found["mask"].axes == ("batch", "time")
    found = arguments_in("emissions (tags, as usual)", ["emissions"])
    assert found["emissions"].axes == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x N C L, G C C, b C", {"x": ("N", "C", "L"), "G": ("C", "C"), "b": ("C",)}),
        ("G 3 D D D, x N 3 -> N 3", {"G": ("=3", "D", "D", "D"), "x": ("N", "=3")}),
        ("x B C T, b B S, mode 0 zero 1 clamp", {"x": ("B", "C", "T"), "b": ("B", "S")}),
        ("x B K in [0, 1], G K weights", {"x": ("B", "K")}),
        ("x A", {}),
        ("the x A B of it", {}),
        ("x K function, b L", {}),
    ],
)
def test_shapes_without_brackets(text: str, expected: dict[str, tuple[str, ...]]) -> None:
    found = arguments_in(text, ["x", "G", "b"])
    assert {name: item.axes for name, item in found.items() if item.axes} == expected


def test_brackets_of_one_word_tell_what_others_are() -> None:
    text = "Counts under mean mu.\nmu (cells, genes), theta (genes,), y (cells, genes) -> (cells,)"
    found = arguments_in(text, ["mu", "theta", "y"])
    axes = {name: item.axes for name, item in found.items()}
    assert axes == {"mu": ("cells", "genes"), "theta": ("genes",), "y": ("cells", "genes")}
    assert arguments_in("y (labels, targets)", ["y"])["y"].axes == ()


def test_names_that_share_a_shape_share_what_is_said_behind_it() -> None:
    text = "A, B (n, n) positive definite; m (n,), C (n, n) lower."
    found = arguments_in(text, ["A", "B", "m", "C"])
    said = {name: [w for w in ("definite", "lower") if w in found[name].words] for name in found}
    assert said == {"A": ["definite"], "B": ["definite"], "m": [], "C": ["lower"]}
