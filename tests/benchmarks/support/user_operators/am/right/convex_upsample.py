import torch
import torch.nn.functional as F
from torch import nn


class _Convex(torch.autograd.Function):

    @staticmethod
    def weights(logits, temp, s):
        B, _, H, W = logits.shape
        return (logits * temp).reshape(B, 9, s, s, H, W).softmax(1)

    @staticmethod
    def forward(ctx, flow, logits, temp, s):
        ctx.save_for_backward(flow, logits, temp)
        ctx.s = s
        B, C, H, W = flow.shape
        p = _Convex.weights(logits, temp, s)
        nb = F.unfold(flow, 3, padding=1).reshape(B, C, 9, H, W)
        out = torch.einsum("bkijhw,bckhw->bchiwj", p, nb)
        return out.reshape(B, C, H * s, W * s)

    @staticmethod
    def backward(ctx, g):
        flow, logits, temp = ctx.saved_tensors
        s = ctx.s
        B, C, H, W = flow.shape
        p = _Convex.weights(logits, temp, s)
        nb = F.unfold(flow, 3, padding=1).reshape(B, C, 9, H, W)
        g = g.reshape(B, C, H, s, W, s)
        g_nb = torch.einsum("bchiwj,bkijhw->bckhw", g, p)
        g_flow = F.fold(g_nb.reshape(B, C * 9, H * W), (H, W), 3, padding=1)
        gp = torch.einsum("bchiwj,bckhw->bkijhw", g, nb)
        gz = (p * (gp - (p * gp).sum(1, keepdim=True))).reshape(logits.shape)
        return g_flow, gz * temp, (gz * logits).sum(), None


class ConvexUpsample(nn.Module):
    """Upsample (B, C, H, W) by convex combinations of 3x3 neighbours.

    logits: (B, 9 * factor**2, H, W). The temperature is trained.
    """

    def __init__(self, factor=2):
        super().__init__()
        self.factor = factor
        self.log_temp = nn.Parameter(torch.zeros(()))

    def forward(self, flow, logits):
        return _Convex.apply(flow, logits, self.log_temp.exp(), self.factor)
