import torch
from torch import Tensor
from torch.autograd import Function


def _sym(covar: Tensor) -> Tensor:
    return (covar + covar.mT) / 2


def _solve(covar: Tensor, rhs: Tensor) -> Tensor:
    return torch.cholesky_solve(rhs, torch.linalg.cholesky(_sym(covar)))


class InvQuadLogdet(Function):
    r"""
    Given a PSD matrix A (or a batch of PSD matrices A), this function computes one or both of the following

    * the inverse quadratic terms :math:`b_j^T A^{-1} b_j` of the columns of `rhs`,
    * the log determinant.

    Only the symmetric part of A counts.

    Shapes: covar `(*batch, n, n)`, rhs `(*batch, n, m)`. The first output is `(*batch, m)`, or `(*batch)`
    with `reduce_inv_quad`; the second one is `(*batch)`. A term that is switched off is zero.
    """

    @staticmethod
    def forward(ctx, covar, rhs, inv_quad=True, logdet=True, reduce_inv_quad=True):
        if not (inv_quad or logdet):
            raise RuntimeError("Either inv_quad or logdet must be true (or both)")
        if covar.shape[:-1] != rhs.shape[:-1]:
            raise RuntimeError("rhs does not match the matrix")
        ctx.flags = inv_quad, logdet, reduce_inv_quad
        ctx.save_for_backward(covar, rhs)
        quad_term = rhs.new_zeros(rhs.shape[:-2] + rhs.shape[-1:])
        if inv_quad:
            quad_term = (rhs * _solve(covar, rhs)).sum(-2)
        if reduce_inv_quad:
            quad_term = quad_term.sum(-1)
        det_term = covar.new_zeros(covar.shape[:-2])
        if logdet:
            det_term = 2 * torch.linalg.cholesky(_sym(covar)).diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return quad_term, det_term

    @staticmethod
    def backward(ctx, quad_grad, det_grad):
        covar, rhs = ctx.saved_tensors
        inv_quad, logdet, reduce_inv_quad = ctx.flags
        covar_grad = torch.zeros_like(covar)
        rhs_grad = torch.zeros_like(rhs)
        if inv_quad:
            if reduce_inv_quad:
                quad_grad = quad_grad.unsqueeze(-1)
            solves = _solve(covar, rhs)
            weighted = solves * quad_grad.unsqueeze(-2)
            rhs_grad = 2 * weighted
            covar_grad = covar_grad - weighted @ weighted.mT
        if logdet:
            eye = torch.eye(covar.shape[-1], dtype=covar.dtype, device=covar.device).expand_as(covar)
            covar_grad = covar_grad + det_grad[..., None, None] * _solve(covar, eye)
        return covar_grad, rhs_grad, None, None, None
