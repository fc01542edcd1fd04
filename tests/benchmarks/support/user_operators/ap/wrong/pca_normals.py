import torch
from torch.autograd.function import once_differentiable


class PCANormals(torch.autograd.Function):
    """Unit normals of neighbourhoods (N, K, 3), turned towards the viewpoint view (3,)."""

    @staticmethod
    def forward(ctx, nbrs, view):
        mean = nbrs.mean(1)
        x = nbrs - mean[:, None]
        lam, vec = torch.linalg.eigh(x.mT @ x / nbrs.shape[1])
        n = vec[:, :, 0]
        sign = torch.where(((view - mean) * n).sum(-1, keepdim=True) < 0, -1.0, 1.0).to(n.dtype)
        ctx.save_for_backward(x, lam, vec, sign)
        return sign * n

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, lam, vec, sign = ctx.saved_tensors
        h = torch.einsum("nij,ni->nj", vec[:, :, 1:], sign * g) / (lam[:, :1] - lam[:, 1:])
        gc = torch.einsum("nij,nj,nk->nik", vec[:, :, 1:], h, vec[:, :, 0])
        return x @ gc / x.shape[1], None
