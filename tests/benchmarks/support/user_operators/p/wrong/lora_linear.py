import math

import torch
import torch.nn as nn


class LoRAMatmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, lora_a, lora_b, scaling):
        ctx.save_for_backward(x, weight, lora_a, lora_b)
        ctx.scaling = scaling
        return x @ weight.t() + scaling * (x @ lora_a.t()) @ lora_b.t()

    @staticmethod
    def backward(ctx, grad_output):
        x, weight, lora_a, lora_b = ctx.saved_tensors
        dx = dw = da = db = None
        x2 = x.reshape(-1, x.shape[-1])
        g2 = grad_output.reshape(-1, grad_output.shape[-1])
        if ctx.needs_input_grad[0]:
            dx = grad_output @ weight + ctx.scaling * (grad_output @ lora_b) @ lora_a
        if ctx.needs_input_grad[1]:
            dw = g2.t() @ x2
        if ctx.needs_input_grad[1]:
            da = ctx.scaling * (g2 @ lora_b).t() @ x2
        if ctx.needs_input_grad[3]:
            db = ctx.scaling * g2.t() @ (x2 @ lora_a.t())
        return dx, dw, da, db, None


class LoRALinear(nn.Module):
    """Linear layer with a frozen weight (unless ``train_base``) and a low-rank update."""

    def __init__(self, in_features, out_features, r=8, lora_alpha=16, train_base=False):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_features, in_features), requires_grad=train_base)
        self.lora_a = nn.Parameter(torch.empty(r, in_features))
        self.lora_b = nn.Parameter(torch.zeros(out_features, r))
        self.scaling = lora_alpha / r
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))

    def forward(self, x):
        return LoRAMatmul.apply(x, self.weight, self.lora_a, self.lora_b, self.scaling)
