import torch
from torch import nn
from torch.autograd.function import once_differentiable


class GatedScan(torch.autograd.Function):
    # h[t] = a[t] h[t-1] + b[t], with h[t-1] = 0 where a sequence starts
    @staticmethod
    def forward(ctx, a, b, start):
        live = (~start)[..., None].to(a.dtype)
        h, hs = torch.zeros_like(a[:, 0]), []
        for t in range(a.shape[1]):
            h = a[:, t] * live[:, t] * h + b[:, t]
            hs.append(h)
        hs = torch.stack(hs, 1)
        ctx.save_for_backward(a, live, hs)
        return hs

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        a, live, hs = ctx.saved_tensors
        ga, gb = torch.zeros_like(a), torch.empty_like(a)
        lam = torch.zeros_like(a[:, 0])
        for t in range(a.shape[1] - 1, -1, -1):
            lam = lam + g[:, t]
            gb[:, t] = lam
            if t:
                ga[:, t] = lam * live[:, t] * hs[:, t - 1]
            lam = lam * a[:, t] * live[:, t]
        return ga, gb, None


class PackedRNN(nn.Module):
    """Minimal gated recurrence over packed documents: x (B, T, D), start (B, T) bool"""

    def __init__(self, dim):
        super().__init__()
        self.gate = nn.Linear(dim, dim)
        self.value = nn.Linear(dim, dim)

    def forward(self, x, start):
        z = torch.sigmoid(self.gate(x))
        return GatedScan.apply(1 - z, z * self.value(x), start)
