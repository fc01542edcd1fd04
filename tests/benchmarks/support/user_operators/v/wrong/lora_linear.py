import torch
from torch import nn


class LoRAFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, W, A, B, scaling):
        ctx.save_for_backward(x, W, A, B)
        ctx.scaling = scaling
        return x @ W.t() + scaling * (x @ A.t() @ B.t())

    @staticmethod
    def backward(ctx, dy):
        x, W, A, B = ctx.saved_tensors
        s = ctx.scaling
        x2, dy2 = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
        dyB = s * (dy2 @ B)
        dA = s * dyB.t() @ x2
        dB = s * dy2.t() @ (x2 @ A.t())
        dx = (dy2 @ W + dyB @ A).view_as(x)
        dW = dy2.t() @ x2 if ctx.needs_input_grad[1] else None
        return dx, dW, dA, dB, None


class LoRALinear(nn.Module):
    def __init__(self, in_features, out_features, r=4, lora_alpha=8):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, in_features) / in_features ** 0.5, requires_grad=False)
        self.lora_A = nn.Parameter(torch.randn(r, in_features) / in_features ** 0.5)
        self.lora_B = nn.Parameter(torch.zeros(out_features, r))
        self.scaling = lora_alpha / r

    def forward(self, x):
        return LoRAFunction.apply(x, self.weight, self.lora_A, self.lora_B, self.scaling)
