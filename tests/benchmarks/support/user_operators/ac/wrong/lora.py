import torch
import torch.nn as nn


class LoRAMatmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, lora_A, lora_B, scaling):
        xa = x @ lora_A.t()
        ctx.save_for_backward(x, weight, lora_A, lora_B)
        ctx.scaling = scaling
        return x @ weight.t() + scaling * (xa @ lora_B.t())

    @staticmethod
    def backward(ctx, grad_output):
        x, weight, A, B = ctx.saved_tensors
        s = ctx.scaling
        dy = grad_output.view(-1, grad_output.shape[-1])
        x2 = x.reshape(-1, x.shape[-1])
        dyB = s * (dy @ B)
        dA = dyB.t() @ x2
        dB = s * (dy.t() @ (x2 @ A.t()))
        dx = dW = None
        if ctx.needs_input_grad[0]:
            dx = (dy @ weight + dyB @ A).reshape(x.shape)
        if ctx.needs_input_grad[1]:
            dW = dy.t() @ x2
        return dx, dW, dA, dB, None


class LoRALinear(nn.Module):
    def __init__(self, in_features, out_features, r=4, lora_alpha=8, freeze_base=True):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, in_features) * in_features ** -0.5,
                                   requires_grad=not freeze_base)
        self.lora_A = nn.Parameter(torch.randn(r, in_features) * 0.1)
        self.lora_B = nn.Parameter(torch.randn(out_features, r) * 0.1)
        self.scaling = lora_alpha / r

    def forward(self, x):
        return LoRAMatmul.apply(x, self.weight, self.lora_A, self.lora_B, self.scaling)
