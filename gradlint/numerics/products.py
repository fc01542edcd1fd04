"""Inner products and norms in float64, whatever the dtype of the operands."""

from __future__ import annotations

import math

import torch


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """``tensor`` dense and detached, in float64 or complex128, in which all sums are taken."""
    if tensor.dtype is torch.float64 and tensor.layout is torch.strided:
        return tensor.detach() if tensor.requires_grad else tensor
    tensor = dense(tensor)
    if tensor.is_complex():
        return tensor.detach().to(torch.complex128)
    return tensor.detach().to(torch.float64)


def equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """``torch.equal``, for complex numbers of 16 bits as well, for which PyTorch has none."""
    if one.dtype == other.dtype == torch.complex32:
        one, other = torch.view_as_real(one), torch.view_as_real(other)
    return torch.equal(one, other)


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """``tensor`` as a dense one: sparse layouts are unpacked, nested tensors stay as they are."""
    return tensor if tensor.layout == torch.strided or tensor.is_nested else tensor.to_dense()


def all_finite(tensor: torch.Tensor) -> bool:
    """Whether no element is NaN or infinite; sparse tensors too."""
    return bool(torch.isfinite(dense(tensor.detach())).all())


def real_dot(a: torch.Tensor, b: torch.Tensor) -> float:
    """Re Σ conj(aᵢ)·bᵢ in float64.

    This is PyTorch's convention for complex tensors: a gradient g predicts the change Re⟨g, dx⟩ of
    a real loss (it is the conjugate Wirtinger derivative).
    """
    a, b = widened(a), widened(b)
    if a.is_complex() or b.is_complex():
        return float((a.conj() * b).real.sum())
    return float((a * b).sum())


def norm(tensor: torch.Tensor) -> float:
    """Euclidean norm in float64, without overflow or underflow; 0 for an empty tensor."""
    if not tensor.numel():
        return 0.0
    wide = widened(tensor)
    found = float(torch.linalg.vector_norm(wide))
    if 1e-140 < found < 1e140:
        return found
    top = float(wide.abs().max())
    if not 0.0 < top < math.inf:
        return top
    return top * float(torch.linalg.vector_norm(wide / top))


def rms(tensor: torch.Tensor) -> float:
    """Root of the mean square in float64; 0 for an empty tensor."""
    if not tensor.numel():
        return 0.0
    found, root = norm(tensor), math.sqrt(tensor.numel())
    if not math.isinf(found):
        return found / root
    # The norm of elements near the end of float64 is beyond it; their mean square is not.
    wide = widened(tensor)
    top = float(wide.abs().max())
    return top * min(norm(wide / top) / root, 1.0) if math.isfinite(top) else top


def unit_roundoff(dtype: torch.dtype) -> float:
    """Spacing of ``dtype`` at 1 (``torch.finfo.eps``), of the real part for complex dtypes."""
    return torch.finfo(dtype).eps
