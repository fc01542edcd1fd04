import torch
from torch import Tensor
from torch.autograd import Function


class Monarch(Function):
    """Two block-diagonal products with a transposition between. x (..., p * q), left (p, r, q), right (r, s, p)

    -> (..., s * r)"""

    @staticmethod
    def forward(ctx, x: Tensor, left: Tensor, right: Tensor) -> Tensor:
        xb = x.reshape(-1, left.size(0), left.size(2))
        mid = torch.einsum("npq,prq->nrp", xb, left)
        ctx.save_for_backward(x, left, right, mid)
        y = torch.einsum("nrp,rsp->nsr", mid, right)
        return y.reshape(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx, g: Tensor):
        x, left, right, mid = ctx.saved_tensors
        xb = x.reshape(-1, left.size(0), left.size(2))
        gy = g.reshape(-1, right.size(1), right.size(0))
        dright = torch.einsum("nsr,nrp->rsp", gy, mid)
        dmid = torch.einsum("nsr,rsp->nrp", gy, right)
        dleft = torch.einsum("nrp,npq->prq", dmid, xb)
        dx = torch.einsum("nrp,prq->npq", dmid, left)
        return dx.reshape(x.shape), dleft, dright
