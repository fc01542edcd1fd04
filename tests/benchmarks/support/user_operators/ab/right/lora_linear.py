import math

import torch
import torch.nn as nn


def _scale(alpha, r, rslora):
    return alpha / math.sqrt(r) if rslora else alpha / r


class _LoRA(torch.autograd.Function):
    """y = x W' + s (x A') B' + b; W is frozen, x A' is made again in backward."""

    @staticmethod
    def forward(ctx, x, W, A, B, b, alpha, rslora):
        ctx.save_for_backward(x, W, A, B)
        ctx.alpha, ctx.rslora = alpha, rslora
        y = x @ W.t() + _scale(alpha, A.shape[0], rslora) * ((x @ A.t()) @ B.t())
        return y if b is None else y + b

    @staticmethod
    def backward(ctx, dy):
        x, W, A, B = ctx.saved_tensors
        s = _scale(ctx.alpha, A.shape[0], ctx.rslora)
        dyB = s * (dy @ B)
        dx = dA = dB = db = None
        if ctx.needs_input_grad[0]:
            dx = dy @ W + dyB @ A
        x2 = x.reshape(-1, x.shape[-1])
        if ctx.needs_input_grad[2]:
            dA = dyB.reshape(-1, A.shape[0]).t() @ x2
        if ctx.needs_input_grad[3]:
            dB = s * dy.reshape(-1, dy.shape[-1]).t() @ (x2 @ A.t())
        if ctx.needs_input_grad[4]:
            db = dy.reshape(-1, dy.shape[-1]).sum(0)
        return dx, None, dA, dB, db, None, None


class LoRALinear(nn.Module):
    def __init__(self, d_in: int, d_out: int, r: int = 4, alpha: float = 8.0, rslora: bool = False, bias: bool = True):
        super().__init__()
        g = torch.Generator().manual_seed(0)
        self.weight = nn.Parameter(torch.randn(d_out, d_in, generator=g) / math.sqrt(d_in), requires_grad=False)
        self.lora_A = nn.Parameter(torch.randn(r, d_in, generator=g) / math.sqrt(r))
        self.lora_B = nn.Parameter(0.1 * torch.randn(d_out, r, generator=g))
        self.bias = nn.Parameter(torch.zeros(d_out)) if bias else None
        self.alpha, self.rslora = alpha, rslora

    def forward(self, x):
        return _LoRA.apply(x, self.weight, self.lora_A, self.lora_B, self.bias, self.alpha, self.rslora)
