"""Compare two results of the same computation, obtained in two ways."""

from __future__ import annotations

import torch

from gradlint.numerics.products import unit_roundoff

#: Rounding by which they may differ, in units of the dtype's epsilon relative to the largest
#: element (heuristic: sums of a few thousand terms in a different order).
ROUNDINGS = 100.0


def close(a: torch.Tensor, b: torch.Tensor, top: float | None = None) -> bool:
    """Whether ``a`` and ``b`` agree up to rounding.

    They do if torch's ``allclose`` says so, or if they agree to :data:`ROUNDINGS` relative to the
    largest element, since the elements are sums whose terms may cancel.

    Args:
        top: size of the terms, if larger than that of the sums.
    """
    if a.shape != b.shape:
        return False
    if not a.numel() or torch.allclose(a, b, equal_nan=True):
        return True
    largest = float(torch.nan_to_num(b.abs(), nan=0.0, posinf=0.0).max())
    within = (a - b).abs() <= ROUNDINGS * unit_roundoff(a.dtype) * max(largest, top or 0.0)
    return bool((within | (a == b) | ((a != a) & (b != b))).all())
