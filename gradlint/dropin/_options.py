"""The options in torch's signatures, and the seed."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass

#: Environment variable that fixes the seed, as for the command line.
SEED_VARIABLE = "GRADLINT_SEED"

#: Upper limit of fresh seeds, which are short enough to be typed.
FRESH_SEEDS = 2**31


#: Torch's own defaults. A difference that torch accepts with them is no failure here either.
EPS, ATOL, RTOL, NONDET_TOL = 1e-6, 1e-5, 1e-3, 0.0


@dataclass(frozen=True)
class Options:
    """The options of one call, named as in torch's signature.

    Args:
        name: "gradcheck" or "gradgradcheck".
        seed: of every direction and cotangent.
    """

    name: str
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_undefined_grad: bool
    check_grad_dtypes: bool
    check_batched_grad: bool
    check_batched_forward_grad: bool
    check_forward_ad: bool
    check_backward_ad: bool
    fast_mode: bool
    masked: bool | None
    seed: int

    def __post_init__(self) -> None:
        for good, message in (
            (
                self.check_forward_ad or self.check_backward_ad,
                "Expected at least one of check_forward_ad or check_backward_ad to be True",
            ),
            (
                self.check_backward_ad or not self.check_batched_grad,
                "Setting check_batched_grad=True requires check_backward_ad to be True",
            ),
            (
                self.check_forward_ad or not self.check_batched_forward_grad,
                "Setting check_batched_forward_grad=True requires check_forward_ad to be True",
            ),
        ):
            if not good:
                raise AssertionError(message)

    @property
    def tolerant(self) -> bool:
        """Whether the step or a tolerance differs from torch's default."""
        return (self.eps, self.atol, self.rtol) != (EPS, ATOL, RTOL)


def seed() -> int:
    """The seed of one call: ``GRADLINT_SEED`` if it is a whole number, else a fresh one."""
    given = os.environ.get(SEED_VARIABLE, "")
    return int(given) if given.isdecimal() else secrets.randbelow(FRESH_SEEDS)
