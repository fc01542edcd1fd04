import torch
import torch.nn as nn
import torch.nn.functional as F


class _DoRAWeight(torch.autograd.Function):
    # W = m * V / ||V||,  V = W0 + s * B A, rows are output features
    @staticmethod
    def forward(ctx, w0, a, b, m, s):
        ctx.save_for_backward(w0, a, b, m)
        ctx.s = s
        v = w0 + s * (b @ a)
        return m * v / v.norm(dim=1, keepdim=True)

    @staticmethod
    def backward(ctx, gw):
        w0, a, b, m = ctx.saved_tensors
        v = w0 + ctx.s * (b @ a)
        norm = v.norm(dim=1, keepdim=True)
        d = v / norm
        gm = (gw * d).sum(1, keepdim=True)
        gv = m / norm * gw
        ga = ctx.s * (b.t() @ gv)
        gb = ctx.s * (gv @ a.t())
        return gv if ctx.needs_input_grad[0] else None, ga, gb, gm, None


class DoRALinear(nn.Module):
    def __init__(self, in_features, out_features, r=2, alpha=4.0):
        super().__init__()
        self.register_buffer("weight", torch.linspace(-1, 1, in_features * out_features).reshape(out_features, in_features))
        self.lora_a = nn.Parameter(torch.randn(r, in_features))
        self.lora_b = nn.Parameter(torch.zeros(out_features, r))
        self.magnitude = nn.Parameter(self.weight.norm(dim=1, keepdim=True))
        self.scaling = alpha / r

    def forward(self, x):
        return F.linear(x, _DoRAWeight.apply(self.weight, self.lora_a, self.lora_b, self.magnitude, self.scaling))
