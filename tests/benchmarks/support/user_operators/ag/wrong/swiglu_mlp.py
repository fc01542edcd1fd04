import torch
import torch.nn as nn


class FusedSwiGLU(torch.autograd.Function):
    # only x is kept; the hidden activations are recomputed in backward

    @staticmethod
    def forward(ctx, x, w_gate, w_up, w_down, scale):
        a = x @ w_gate.T
        h = a * torch.sigmoid(a) * (x @ w_up.T)
        ctx.save_for_backward(x, w_gate, w_up, w_down)
        ctx.scale = scale
        return (h @ w_down.T) * scale

    @staticmethod
    def backward(ctx, grad_output):
        x, w_gate, w_up, w_down = ctx.saved_tensors
        g = grad_output.mul_(ctx.scale)
        a, u = x @ w_gate.T, x @ w_up.T
        s = torch.sigmoid(a)
        silu = a * s
        dh = g @ w_down
        du = dh * silu
        da = dh * u * s * (1 + a * (1 - s))
        lead = tuple(range(x.dim() - 1))
        outer = lambda p, q: torch.tensordot(p, q, dims=(lead, lead))
        return da @ w_gate + du @ w_up, outer(da, x), outer(du, x), outer(g, silu * u), None


class SwiGLU(nn.Module):
    def __init__(self, dim, hidden, depth_scale=None):
        super().__init__()
        self.gate = nn.Linear(dim, hidden, bias=False)
        self.up = nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)
        self.scale = 1.0 if depth_scale is None else depth_scale ** -0.5

    def forward(self, x):
        return FusedSwiGLU.apply(x, self.gate.weight, self.up.weight, self.down.weight, self.scale)
