"""The polynomials of ``kernels/common/normal.h``, made anew: run it to print the coefficients.

They are minimax fits of relative error, by Lawson's algorithm: least squares, whose weights are
multiplied by the error at each point until it is the same at all extrema (Lawson 1961; Rice and
Usow, The Lawson algorithm and extensions, Mathematics of Computation 22, 1968).
"""

from __future__ import annotations

import mpmath
import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

#: Beyond it e^(−z²/2) is 0 in float32.
FARTHEST = 14.5

#: Scale of t = 1 / (1 + scale·z), near the best for the degree and a float32, and the degree: for
#: float32, and for 16 bits.
KINDS = ((41 / 128, 9), (23 / 64, 5))

POINTS, ROUNDS = 500, 300


def mills(z: float) -> float:
    """Φ(−z)·e^(z²/2), to 40 digits before it is rounded."""
    with mpmath.workdps(40):
        x = mpmath.mpf(z)
        return float(mpmath.erfc(x / mpmath.sqrt(2)) * mpmath.exp(x * x / 2) / 2)


def fit(scale: float, degree: int) -> tuple[np.ndarray, float]:
    """Coefficients of the powers of t, lowest first, as float32, and the largest relative error
    of the polynomial with them."""
    lowest, nodes, _, exact = sampled(scale)
    basis = np.polynomial.chebyshev.chebvander(nodes, degree) / exact[:, None]
    weights = np.full(POINTS, 1 / POINTS)
    found, least = np.zeros(degree + 1), np.inf
    for _ in range(ROUNDS):
        root = np.sqrt(weights)
        tried = np.linalg.lstsq(basis * root[:, None], root, rcond=None)[0]
        error = np.abs(basis @ tried - 1)
        if error.max() < least:
            found, least = tried, error.max()
        weights *= error
        weights /= weights.sum()
    powers = Chebyshev(found, domain=[lowest, 1]).convert(kind=Polynomial).coef
    rounded = powers.astype(np.float32).astype(np.float64)
    return rounded, relative_error(scale, rounded)


def relative_error(scale: float, coefficients: np.ndarray) -> float:
    """The largest relative error of the polynomial with these coefficients, lowest power first."""
    _, _, t, exact = sampled(scale)
    return float(np.abs(np.polynomial.polynomial.polyval(t, coefficients) / exact - 1).max())


def sampled(scale: float) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """The lowest t, Chebyshev nodes in [-1, 1], the t of each, and Mills' ratio there."""
    lowest = 1 / (1 + scale * FARTHEST)
    nodes = np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)
    t = lowest + (1 - lowest) * (nodes + 1) / 2
    return lowest, nodes, t, np.array([mills((1 / x - 1) / scale) for x in t])


if __name__ == "__main__":
    for kind in KINDS:
        coefficients, largest = fit(*kind)
        for coefficient in coefficients[::-1]:
            print(f"{coefficient:.9g}f")
        print(f"relative error {largest:.2g}")
