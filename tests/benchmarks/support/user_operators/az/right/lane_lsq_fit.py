import torch
from torch import Tensor


def _vandermonde(y: Tensor, degree: int) -> Tensor:
    return torch.stack([y**k for k in range(degree + 1)], -1)


class _LaneFit(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, x, y, degree, ridge):
        basis = _vandermonde(y, degree)
        weighted = basis * weight.square()[..., None]
        normal = basis.t() @ weighted + ridge * torch.eye(degree + 1, dtype=x.dtype, device=x.device)
        coef = torch.linalg.solve(normal, (weighted.transpose(1, 2) @ x[..., None]))[..., 0]
        ctx.save_for_backward(weight, x, y, coef)
        ctx.opts = degree, ridge
        return coef

    @staticmethod
    def backward(ctx, grad):
        weight, x, y, coef = ctx.saved_tensors
        degree, ridge = ctx.opts
        basis = _vandermonde(y, degree)
        weighted = basis * weight.square()[..., None]
        normal = basis.t() @ weighted + ridge * torch.eye(degree + 1, dtype=x.dtype, device=x.device)
        adjoint = torch.linalg.solve(normal, grad[..., None])[..., 0]
        along = adjoint @ basis.t()
        residual = x - coef @ basis.t()
        return 2 * weight * along * residual, weight.square() * along, None, None, None


def lane_lsq_fit(weight: Tensor, x: Tensor, y: Tensor, degree: int = 2, ridge: float = 1e-3) -> Tensor:
    """Differentiable weighted least squares fit x = sum_k coef_k y**k of lane points.

    weight, x: (lanes, N); y: (N,) rows, not differentiated -> (lanes, degree + 1).
    """
    if weight.shape != x.shape or y.shape != x.shape[1:]:
        raise ValueError("weight and x must be (lanes, N), y (N,)")
    return _LaneFit.apply(weight, x, y, degree, ridge)
