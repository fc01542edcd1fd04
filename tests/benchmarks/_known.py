"""Operators of the database whose gradient is not, and does not claim to be, the derivative of
their forward at the samples that the database gives. PyTorch's own gradient tests skip each of
them, expect it to fail, or give it another sample."""

from __future__ import annotations

_UNREPARAMETRISED = (
    "draws from a distribution and defines its gradient as zero, instead of that of the draw"
)
_REPEATED = "indices repeat: the last one written stays, and backward gives the gradient to all"
_OVERWRITTEN = (
    "wrong in PyTorch: the gradient is that of the elements overwritten, where the derivative is "
    "zero, and zero for the others (rightly found; the database expects its gradient test to fail)"
)

#: (operator, its samples) → why its gradient is not the derivative there.
KNOWN: dict[tuple[str, tuple[int, ...]], str] = {
    ("as_strided_partial_views", (2,)): "reads its input's storage beyond the input's elements",
    ("as_strided_scatter", (0, 1, 2)): _OVERWRITTEN,
    ("linalg_pinv_hermitian", (0,)): "declared Hermitian by a flag, at a matrix that is not",
    ("nn_functional_ctc_loss", (0, 1, 2)): (
        "takes log-probabilities and returns the gradient towards what log_softmax was given: "
        "the derivative along rows that stay normalised only"
    ),
    ("nn_functional_max_unpool1d", (1, 2)): _REPEATED,
    ("nn_functional_max_unpool2d", (1, 2)): _REPEATED,
    ("nn_functional_max_unpool3d", (0, 1, 2)): _REPEATED,
    ("normal", (0, 1, 2)): _UNREPARAMETRISED,
    ("normal_number_mean", (2,)): _UNREPARAMETRISED,
}


def known(operator: str, sample: int) -> str | None:
    """Why ``operator`` is left out at its sample of this number; None where it is not."""
    return next(
        (why for (name, which), why in KNOWN.items() if name == operator and sample in which), None
    )
