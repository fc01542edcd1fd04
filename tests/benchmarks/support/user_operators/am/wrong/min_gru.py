import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class GatedScan(Function):
    @staticmethod
    def forward(ctx, z, cand, h0, reset):
        # z, cand (B, T, H); h0 (B, H) or None; reset (B, T) bool or None: forget the past before step t
        B, T, H = z.shape
        keep = z.new_ones(B, T) if reset is None else 1 - reset.to(z.dtype)
        h = z.new_zeros(B, H) if h0 is None else h0
        past, out = [], []
        for t in range(T):
            past.append(keep[:, t, None] * h)
            h = (1 - z[:, t]) * past[-1] + z[:, t] * cand[:, t]
            out.append(h)
        ctx.save_for_backward(z, cand, keep, torch.stack(past, 1))
        ctx.has_h0 = h0 is not None
        return torch.stack(out, 1), h.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, g_all, g_last):
        z, cand, keep, past = ctx.saved_tensors
        gz, gc = torch.empty_like(z), torch.empty_like(cand)
        lam = g_last
        for t in reversed(range(z.shape[1])):
            lam = lam + g_all[:, t]
            gz[:, t] = lam * (cand[:, t] - past[:, t])
            gc[:, t] = lam * z[:, t]
            lam = lam * (1 - z[:, t])
        return gz, gc, lam if ctx.has_h0 else None, None


class MinGRU(nn.Module):
    """Minimal GRU. x (B, T, I) -> states (B, T, H), last state (B, H)."""

    def __init__(self, inputs, hidden):
        super().__init__()
        self.gate = nn.Linear(inputs, hidden)
        self.cand = nn.Linear(inputs, hidden)

    def forward(self, x, h0=None, reset=None):
        return GatedScan.apply(torch.sigmoid(self.gate(x)), self.cand(x), h0, reset)
