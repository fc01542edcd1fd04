"""RMSD of two conformers after optimal superposition (Kabsch)."""
import torch
from torch.autograd.function import once_differentiable


class _Superpose(torch.autograd.Function):
    @staticmethod
    def forward(ctx, mobile, target, weights):
        w = (weights / weights.sum()).unsqueeze(1)
        p = mobile - (w * mobile).sum(0)
        q = target - (w * target).sum(0)
        u, _, vt = torch.linalg.svd(p.t() @ (w * q))
        fix = torch.ones(3, dtype=p.dtype, device=p.device)
        fix[2] = torch.sign(torch.linalg.det(u @ vt))
        rot = u * fix @ vt
        diff = p @ rot - q
        rmsd = (w * diff**2).sum().sqrt()
        ctx.diff, ctx.rot, ctx.w = diff, rot.detach(), w
        ctx.rmsd = rmsd.detach()
        ctx.mark_non_differentiable(rot)
        return rmsd, rot

    @staticmethod
    @once_differentiable
    def backward(ctx, grad, _):
        # the rotation is optimal, so that its own change does not matter
        pull = ctx.diff.mul_(grad * ctx.w / ctx.rmsd.clamp_min(1e-12))
        return pull @ ctx.rot.t(), -pull, None


def superposed_rmsd(mobile, target, weights=None):
    """
    Args:
        mobile, target: (N, 3) coordinates
        weights: (N,) masses, not differentiated; None for equal ones

    Returns:
        rmsd (scalar) and the rotation (3, 3) that acts on rows of `mobile`
    """
    if weights is None:
        weights = torch.ones_like(mobile[:, 0])
    return _Superpose.apply(mobile, target, weights.detach())
