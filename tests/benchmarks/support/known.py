"""Operators of the database whose gradient is not, and does not claim to be, the derivative of
their forward at the samples that the database gives. PyTorch's own gradient tests skip each of
them, expect it to fail, or give it another sample."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """Why the gradient of an operator is not the derivative at these of its samples, whose values
    depend on the dtype."""

    operator: str
    float64: tuple[int, ...]
    float32: tuple[int, ...]
    why: str


_DRAWN = "draws from a distribution and defines its gradient as zero, instead of that of the draw"
_REPEATED = "indices repeat: the last one written stays, and backward gives the gradient to all"

#: What the benchmark leaves out.
KNOWN = (
    Known(
        "as_strided_partial_views",
        (2,),
        (2,),
        "reads its input's storage beyond the input's elements",
    ),
    Known(
        "as_strided_scatter",
        (0, 1, 2),
        (0, 1, 2),
        "wrong in PyTorch: the gradient goes to the elements overwritten, whose derivative is "
        "zero, and not to the others (found rightly; PyTorch expects its own test to fail)",
    ),
    Known(
        "linalg_pinv_hermitian",
        (0,),
        (0,),
        "declared Hermitian by a flag, at a matrix that is not",
    ),
    Known(
        "nn_functional_ctc_loss",
        (0, 1, 2),
        (0, 1, 2),
        "takes log-probabilities and returns the gradient towards what log_softmax was given: "
        "the derivative along rows that stay normalised only",
    ),
    Known("nn_functional_max_unpool1d", (1, 2), (1, 2), _REPEATED),
    Known("nn_functional_max_unpool2d", (1, 2), (0, 1, 2), _REPEATED),
    Known("nn_functional_max_unpool3d", (0, 1, 2), (0, 1, 2), _REPEATED),
    Known("normal", (0, 1, 2), (0, 1, 2), _DRAWN),
    Known("normal_number_mean", (2,), (2,), _DRAWN),
)


def known(operator: str, sample: int, dtype: str) -> str | None:
    """Why ``operator`` is left out at its sample of this number; None where it is not."""
    for item in KNOWN:
        if item.operator == operator and sample in getattr(item, dtype):
            return item.why
    return None
