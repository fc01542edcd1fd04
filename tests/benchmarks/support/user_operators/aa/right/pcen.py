import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _Smooth(torch.autograd.Function):
    """First-order smoother m[t] = (1 - s) m[t-1] + s x[t], m[0] = x[0]; x (B, F, T), s (F,)."""

    @staticmethod
    def forward(ctx, x, s):
        m = torch.empty_like(x)
        m[..., 0] = x[..., 0]
        for t in range(1, x.shape[-1]):
            m[..., t] = torch.lerp(m[..., t - 1], x[..., t], s)
        ctx.save_for_backward(x, s, m)
        return m

    @staticmethod
    @once_differentiable
    def backward(ctx, gm):
        x, s, m = ctx.saved_tensors
        gx = torch.empty_like(gm)
        gs = torch.zeros_like(s)
        carry = torch.zeros_like(gm[..., 0])
        for t in range(x.shape[-1] - 1, 0, -1):
            carry = carry + gm[..., t]
            gx[..., t] = s * carry
            gs += (carry * (x[..., t] - m[..., t - 1])).sum(0)
            carry = (1 - s) * carry
        gx[..., 0] = gm[..., 0] + carry
        return gx, gs


class PCEN(nn.Module):
    """Per-channel energy normalisation with trainable parameters."""

    def __init__(self, num_bands, s=0.04, alpha=0.96, delta=2.0, r=0.5, eps=1e-6, trainable_smooth=True):
        super().__init__()
        self.log_alpha = nn.Parameter(torch.full((num_bands, 1), alpha).log())
        self.log_delta = nn.Parameter(torch.full((num_bands, 1), delta).log())
        self.log_r = nn.Parameter(torch.full((num_bands, 1), r).log())
        s = torch.full((num_bands,), s)
        if trainable_smooth:
            self.s = nn.Parameter(s)
        else:
            self.register_buffer("s", s)
        self.eps = eps

    def forward(self, E):
        M = _Smooth.apply(E, self.s)
        alpha, delta, r = self.log_alpha.exp(), self.log_delta.exp(), self.log_r.exp()
        gain = torch.exp(-alpha * torch.log(M + self.eps))
        return (E * gain + delta) ** r - delta ** r
