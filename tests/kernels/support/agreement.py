"""How far an operator on one device is from itself on the CPU: outputs, gradients, and gradients
of gradients, over all samples of its specification."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from gradlint.model.op import Op
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.native.reference import load_reference
from gradlint.native.roots import specs_root
from gradlint.spec.open import open_spec
from gradlint.targets.resolve import resolve
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem

#: What two devices may differ by, as a share of the largest element: sums are taken in another
#: order, and results in 16 bits are rounded once (two units in the last place of 11 and 8 bits).
SHARES = {
    torch.float64: 1e-12,
    torch.float32: 2e-5,
    torch.float16: 2.0**-9,
    torch.bfloat16: 2.0**-6,
}

SETTINGS = Settings(seed=1)


def opened(path: Path) -> tuple[Op, list[Sample]]:
    """The operator of a specification and its samples."""
    (ref,) = resolve(str(path), SETTINGS)
    return open_spec(ref, SETTINGS)


def disagreement(path: Path, dtype: torch.dtype, device: str) -> float:
    """The largest difference between ``device`` and the CPU over that which ``dtype`` allows.

    Infinite where one is finite and the other is not.
    """
    op, samples = opened(path)
    worst = 0.0
    for sample in samples:
        sides = [_results(op, sample.converted(dtype, where)) for where in ("cpu", device)]
        for here, there in zip(*sides, strict=True):
            worst = max(worst, share(here, there))
    return worst


def _results(op: Op, sample: Sample) -> list[torch.Tensor | None]:
    """Outputs, gradients, and gradients of gradients where there are any; on the CPU."""
    problem = Problem(op, sample, seed=SETTINGS.seed)
    leaves, outputs = problem.linearize()
    found: list[torch.Tensor | None] = [output.value for output in outputs]
    chosen = [output for output in outputs if output.differentiable]
    if chosen:
        cotangents = _drawn([output.value for output in chosen], 2)
        gradients = problem.backward(chosen, leaves, cotangents, create_graph=True)
        found += gradients
        found += _second(problem, leaves, gradients)
    return [None if value is None else value.detach().cpu() for value in found]


def _second(
    problem: Problem, leaves: list[torch.Tensor], gradients: list[torch.Tensor | None]
) -> list[torch.Tensor | None]:
    smooth = [g for g in gradients if g is not None and g.requires_grad]
    if not smooth:
        return []
    try:
        return problem.backward(smooth, leaves, _drawn(smooth, 3))
    except OpRaised:
        return []  # differentiable once


def _drawn(like: list[torch.Tensor], seed: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(t.shape, generator=generator, dtype=torch.float64).to(t.device, t.dtype)
        for t in like
    ]


def share(here: torch.Tensor | None, there: torch.Tensor | None) -> float:
    """The largest difference between two results over that which their dtype allows."""
    if here is None or there is None:
        return 0.0 if here is there else float("inf")
    if here.shape != there.shape or here.dtype != there.dtype:
        return float("inf")
    if not here.is_floating_point() or not here.numel():
        return 0.0 if torch.equal(here, there) else float("inf")
    a, b = here.double(), there.double()
    finite = a.isfinite() & b.isfinite()
    if not torch.equal(a[~finite].nan_to_num(7.0), b[~finite].nan_to_num(7.0)):
        return float("inf")
    if not finite.any():
        return 0.0
    top = float(a[finite].abs().max())
    error = float((a - b)[finite].abs().max())
    return error / top / SHARES[here.dtype] if top > 0 else (0.0 if error == 0 else float("inf"))


def main(device: str) -> None:
    """Print, as JSON, "operator dtype" → :func:`disagreement`, for all of ``specs/``."""
    load_reference(("cpu", device))
    shares = {
        f"{path.stem} {str(dtype).removeprefix('torch.')}": disagreement(path, dtype, device)
        for path in sorted(specs_root().glob("*.yaml"))
        for dtype in SHARES
    }
    print(json.dumps(shares))


if __name__ == "__main__":
    main(*sys.argv[1:])
