import torch
from torch import Tensor


class _TVD(torch.autograd.Function):
    @staticmethod
    def forward(ctx, student: Tensor, teacher: Tensor, keep: Tensor | None, tau: float) -> Tensor:
        ctx.save_for_backward(student, teacher, keep)
        ctx.tau = tau
        d = (student / tau).softmax(-1) - (teacher / tau).softmax(-1)
        rows = 0.5 * d.abs().sum(-1)
        w = torch.ones_like(rows) if keep is None else keep.to(rows.dtype)
        return tau**2 * (rows * w).sum() / w.sum().clamp(min=1)

    @staticmethod
    def backward(ctx, g: Tensor):
        student, teacher, keep = ctx.saved_tensors
        tau = ctx.tau
        ps, pt = (student / tau).softmax(-1), (teacher / tau).softmax(-1)
        w = torch.ones_like(ps[..., 0]) if keep is None else keep.to(ps.dtype)
        coef = (tau * g * w / w.sum().clamp(min=1)).unsqueeze(-1)
        s = 0.5 * (ps - pt).sign()
        ds = ps * (s - (ps * s).sum(-1, keepdim=True))
        dt = pt * (s - (pt * s).sum(-1, keepdim=True))
        return coef * ds, -coef * dt, None, None


def tvd_distill(student: Tensor, teacher: Tensor, keep: Tensor | None = None, tau: float = 1.0) -> Tensor:
    """tau^2 times the mean total variation distance of softened distributions. (..., V) logits, keep (...) bool"""
    return _TVD.apply(student, teacher, keep, tau)
