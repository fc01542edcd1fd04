import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class _Chamfer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, xyz1: Tensor, xyz2: Tensor, single_sided: bool):
        d = ((xyz1[:, :, None, :] - xyz2[:, None, :, :]) ** 2).sum(-1)
        dist1, idx1 = d.min(dim=2)
        dist2, idx2 = d.min(dim=1)
        ctx.save_for_backward(xyz1, xyz2, idx1, idx2)
        ctx.single_sided = single_sided
        loss = dist1.mean(1)
        if not single_sided:
            loss = loss + dist2.mean(1)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_loss):
        xyz1, xyz2, idx1, idx2 = ctx.saved_tensors
        n, m = xyz1.shape[1], xyz2.shape[1]
        g = grad_loss[:, None, None]

        # cloud 1 -> cloud 2
        ind = idx1[..., None].expand(-1, -1, xyz1.shape[-1])
        diff = 2 * g / n * (xyz1 - xyz2.gather(1, ind))
        g1 = diff.clone()
        g2 = torch.zeros_like(xyz2).scatter_add_(1, ind, -diff)
        if not ctx.single_sided:
            # cloud 2 -> cloud 1
            ind = idx2[..., None].expand(-1, -1, xyz2.shape[-1])
            diff = 2 * g / m * (xyz2 - xyz1.gather(1, ind))
            g2 += diff
            g1.scatter_add_(1, ind, -diff)
        return g1, g2, None


def chamfer_loss(xyz1: Tensor, xyz2: Tensor, single_sided: bool = False, reduction: str = "mean") -> Tensor:
    """Squared Chamfer distance of clouds (B, N, D) and (B, M, D)."""
    loss = _Chamfer.apply(xyz1, xyz2, single_sided)
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss
