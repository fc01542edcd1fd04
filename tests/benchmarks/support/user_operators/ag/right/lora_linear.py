import math

import torch
from torch import nn


class _LoRAFn(torch.autograd.Function):
    """y = x W^T + b + s (x A^T) B^T, in one node; x A^T is recomputed"""

    @staticmethod
    def forward(ctx, x, W, b, A, Bm, s):
        ctx.save_for_backward(x, W, A, Bm)
        ctx.s = s
        ctx.bias = b is not None
        y = x @ W.t() + s * ((x @ A.t()) @ Bm.t())
        return y if b is None else y + b

    @staticmethod
    def backward(ctx, dy):
        x, W, A, Bm = ctx.saved_tensors
        need = ctx.needs_input_grad
        x2 = x.reshape(-1, x.shape[-1])
        d2 = dy.reshape(-1, dy.shape[-1])
        dx = dW = db = dA = dB = None
        dlow = ctx.s * (d2 @ Bm)
        if need[0]:
            dx = (d2 @ W + dlow @ A).reshape(x.shape)
        if need[1]:
            dW = d2.t() @ x2
        if ctx.bias and need[2]:
            db = d2.sum(0)
        if need[3]:
            dA = dlow.t() @ x2
        if need[4]:
            dB = ctx.s * d2.t() @ (x2 @ A.t())
        return dx, dW, db, dA, dB, None


class LoRALinear(nn.Module):
    def __init__(self, in_features, out_features, r=2, alpha=4, bias=True, freeze=True, rank_stabilized=False):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, in_features) / math.sqrt(in_features), requires_grad=not freeze)
        self.bias = nn.Parameter(torch.zeros(out_features), requires_grad=not freeze) if bias else None
        self.lora_A = nn.Parameter(torch.randn(r, in_features) * 0.1)
        self.lora_B = nn.Parameter(torch.zeros(out_features, r))
        self.scaling = alpha / (math.sqrt(r) if rank_stabilized else r)

    def forward(self, x):
        return _LoRAFn.apply(x, self.weight, self.bias, self.lora_A, self.lora_B, self.scaling)
