import torch
import torch.nn as nn


class _LoRAMatmul(torch.autograd.Function):
    """y = x W^T + s (x A^T) B^T, the frozen W gets no gradient."""

    @staticmethod
    def forward(ctx, x, W, A, B, s):
        ctx.save_for_backward(x, W, A, B)
        ctx.s = s
        return x @ W.t() + (x @ A.t()) @ B.t() * s

    @staticmethod
    def backward(ctx, dY):
        x, W, A, B = ctx.saved_tensors
        X2, dY2 = x.reshape(-1, x.shape[-1]), dY.reshape(-1, dY.shape[-1])
        dB = ctx.s * dY2.t() @ (X2 @ A.t())
        dA = ctx.s * (dY2 @ B).t() @ X2
        dX = dY @ W + (dY @ B) @ A
        return dX, None, dA, dB, None


class LoRALinear(nn.Module):
    def __init__(self, in_features, out_features, r=2, lora_alpha=4):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, in_features), requires_grad=False)
        self.lora_A = nn.Parameter(torch.randn(r, in_features) / in_features)
        self.lora_B = nn.Parameter(torch.zeros(out_features, r))
        self.scaling = lora_alpha / r

    def forward(self, x):
        return _LoRAMatmul.apply(x, self.weight, self.lora_A, self.lora_B, self.scaling)
