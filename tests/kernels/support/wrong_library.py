"""A wrong twin of the library of reference operators: a fault planted in each of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gradlint.native.recipe import Recipe
from gradlint.native.reference import recipe
from tests.kernels.support.linked import compiled, linked


@dataclass(frozen=True)
class Fault:
    """A fault in one kernel.

    Args:
        kernel: the file, without its ending.
        right, wrong: what is replaced, which stands in the file once, and by what.
        code: of the rule that must find it.
    """

    kernel: str
    right: str
    wrong: str
    code: str = "GL401"


FAULTS = (
    Fault("add_relu", "= in[0] + in[1];", "= in[0] + 2 * in[1];"),
    # In the double backward alone.
    Fault("attention", "(g[j] - g_p) - c_p * g[j]);", "(g[j] - g_p) + c_p * g[j]);", "GL501"),
    Fault("batch_norm", "rstd * (in[1] - g - (in[0] - mean) * rstd * gn)", "rstd * (in[1] - g)"),
    Fault("clipped_relu", "passes(x) ? x :", "passes(x) ? 2 * x :"),
    Fault(
        "exp",
        "W slope(W x) const {\n    return math::exp(x)",
        "W slope(W x) const {\n    return 2 * math::exp(x)",
    ),
    Fault(
        "gelu",
        "distribution(x) + math::vanishing(density(x), x)",
        "distribution(x) - math::vanishing(density(x), x)",
    ),
    Fault("gumbel_softmax", "= in[1] * (in[0] - mean) * rate;", "= in[1] * in[0] * rate;"),
    Fault(
        "layer_norm",
        "rstd * (in[1] * in[2] - a - (in[0] - mean) * rstd * an)",
        "rstd * (in[1] * in[2] - (in[0] - mean) * rstd * an)",
    ),
    Fault("linear", "of_lanes[e] = own;", "of_lanes[e] = 2 * own;"),
    Fault("relu", "passes(x) ? x :", "passes(x) ? 2 * x :"),
    Fault("roi_align", "totals[c] += weight *", "totals[c] -= weight *"),
    Fault("scale", "static_cast<W>(factor) * x;", "static_cast<W>(factor) * x + W(0.5);"),
    Fault(
        "scaled_sigmoid",
        "a * (s.at * s.opposite);",
        "s.at * s.opposite;",
    ),
    Fault("sign_ste", "math::fabs(x) <= 1", "math::fabs(x) <= 2"),
    Fault("silu", "2 + x * (s.opposite - s.at)", "2 - x * (s.opposite - s.at)", "GL501"),
    Fault("soft_rank", "(g - widened(grad_output[j]))", "(g + widened(grad_output[j]))"),
    Fault(
        "soft_threshold", ": x - math::copysign(shift, x);", ": 2 * x - math::copysign(shift, x);"
    ),
    Fault("square", "return 2 * x;", "return 3 * x;"),
    Fault("weighted_sum", "    out[0] = in[0] * in[1];", "    out[0] = 2 * in[0] * in[1];"),
)


def wrong_library(folder: Path) -> Path:
    """The library with all faults, made in ``folder``, for the CPU."""
    right = recipe(("cpu",))
    kernels = [_planted(fault, right, folder) for fault in FAULTS]
    objects = compiled(kernels, ["-O0", f"-I{right.tree}"], folder)
    return linked(objects, right, folder / "wrong.so")


def _planted(fault: Fault, right: Recipe, folder: Path) -> Path:
    assert right.tree is not None
    text = (right.tree / f"{fault.kernel}.cu").read_text(encoding="utf-8")
    assert text.count(fault.right) == 1, f"{fault.kernel}.cu: {fault.right!r}"
    path = folder / f"{fault.kernel}.cpp"
    path.write_text(text.replace(fault.right, fault.wrong), encoding="utf-8")
    return path
