"""A wrong twin of the library of reference operators: a fault planted in each of them.

Only the kernels are compiled again, without optimisation, and linked with the bindings of the
right library: the operators have the same names.
"""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch

from gradlint.native import _tools
from gradlint.native._build import build
from gradlint.native._files import digest_of_file, read_json
from gradlint.native._recipe import Recipe, tree_files
from gradlint.native._reference import recipe


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
    Fault("gumbel_softmax", "= in[1] * (in[0] - inner[0]) / t;", "= in[1] * in[0] / t;"),
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
    Fault("soft_threshold", ": x + shift;", ": -x - shift;"),
    Fault("square", "return 2 * x;", "return 3 * x;"),
    Fault("weighted_sum", "    out[0] = in[0] * in[1];", "    out[0] = 2 * in[0] * in[1];"),
)


def wrong_library(folder: Path) -> Path:
    """The library with all faults, made in ``folder``, for the CPU."""
    right = recipe(("cpu",))
    kernels = [_planted(fault, right, folder) for fault in FAULTS]
    compiler = str(_tools.compiler().path)
    assert right.tree is not None
    command = [compiler, "-std=c++17", "-O0", "-fPIC", f"-I{right.tree}", "-x", "c++", "-c"]
    objects = [path.with_suffix(".o") for path in kernels]
    with ThreadPoolExecutor(_tools.cores()) as pool:
        list(
            pool.map(
                lambda pair: subprocess.run([*command, pair[0], "-o", pair[1]], check=True),
                zip(kernels, objects, strict=True),
            )
        )
    library = folder / "wrong.so"
    torch_libraries = Path(torch.__file__).parent / "lib"
    subprocess.run(
        [
            *(compiler, "-shared", "-fopenmp", "-o", library, *objects, *_bindings(right)),
            *(f"-L{torch_libraries}", "-ltorch", "-ltorch_cpu", "-lc10"),
        ],
        check=True,
    )
    return library


def _planted(fault: Fault, right: Recipe, folder: Path) -> Path:
    assert right.tree is not None
    text = (right.tree / f"{fault.kernel}.cu").read_text(encoding="utf-8")
    assert text.count(fault.right) == 1, f"{fault.kernel}.cu: {fault.right!r}"
    path = folder / f"{fault.kernel}.cpp"
    path.write_text(text.replace(fault.right, fault.wrong), encoding="utf-8")
    return path


def _bindings(right: Recipe) -> list[Path]:
    """The objects of the bindings, as they were compiled for the right library."""
    build(right)
    workplace = right.folder() / "build"
    known = read_json(workplace / "inputs.json")
    assert right.tree is not None
    if any(known.get(str(path)) != digest_of_file(path) for path in tree_files(right.tree)):
        build(right, force=True)  # the objects are those of another state of the sources
    objects = [workplace / f"{Path(source).stem}.o" for source in right.sources]
    assert all(path.is_file() for path in objects)
    return objects
