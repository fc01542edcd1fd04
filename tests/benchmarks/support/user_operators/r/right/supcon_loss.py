import torch
import torch.nn as nn


class _SupCon(torch.autograd.Function):
    @staticmethod
    def forward(ctx, f, tau, pos):
        eye = torch.eye(f.shape[0], dtype=torch.bool, device=f.device)
        z = (f @ f.t() / tau).masked_fill(eye, float("-inf"))
        npos = pos.sum(1)
        lse = z.logsumexp(1)
        zp = (z.masked_fill(eye, 0) * pos).sum(1) / npos.clamp(min=1)
        ctx.save_for_backward(f, tau, pos)
        return ((lse - zp) * (npos > 0)).mean()

    @staticmethod
    def backward(ctx, g):
        f, tau, pos = ctx.saved_tensors
        n = f.shape[0]
        eye = torch.eye(n, dtype=torch.bool, device=f.device)
        s = f @ f.t() / tau
        p = s.masked_fill(eye, float("-inf")).softmax(1)
        npos = pos.sum(1, keepdim=True)
        gs = g / n * (p - pos / npos.clamp(min=1)) * (npos > 0)
        gf = (gs @ f + gs.t() @ f) / tau
        gtau = -(gs * s).sum() / tau
        return gf, gtau, None


class SupConLoss(nn.Module):
    """
    Supervised contrastive loss. `features` (N, D) are unit vectors; positives come from integer
    `labels` or from a constant float `mask` (N, N), whose diagonal is ignored. Anchors without positives
    count as zero. N must be at least 2.
    """

    def __init__(self, temperature=0.1, learnable=False):
        super().__init__()
        t = torch.tensor(float(temperature))
        if learnable:
            self.temperature = nn.Parameter(t)
        else:
            self.register_buffer("temperature", t)

    def forward(self, features, labels=None, mask=None):
        if (labels is None) == (mask is None):
            raise ValueError("give either labels or a mask")
        if mask is None:
            mask = (labels[:, None] == labels[None]).to(features.dtype)
        mask = mask * (1 - torch.eye(len(features), dtype=features.dtype, device=features.device))
        return _SupCon.apply(features, self.temperature, mask)
