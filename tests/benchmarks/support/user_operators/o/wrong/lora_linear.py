import torch
from torch import nn


class _LoRAFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, down, up, scaling):
        ctx.save_for_backward(x, weight, down, up)
        ctx.scaling = scaling
        return x @ weight.t() + scaling * (x @ down.t() @ up.t())

    @staticmethod
    def backward(ctx, grad):
        x, weight, down, up = ctx.saved_tensors
        g_x = g_w = g_down = g_up = None
        g2, x2 = grad.reshape(-1, grad.size(-1)), x.reshape(-1, x.size(-1))
        if ctx.needs_input_grad[0]:
            g_x = grad @ weight + ctx.scaling * (grad @ up @ down)
        if ctx.needs_input_grad[1]:
            g_w = g2.t() @ x2
        if ctx.needs_input_grad[1]:
            g_down = ctx.scaling * (g2 @ up).t() @ x2
        if ctx.needs_input_grad[3]:
            g_up = ctx.scaling * g2.t() @ (x2 @ down.t())
        return g_x, g_w, g_down, g_up, None


class LoRALinear(nn.Module):
    """Frozen linear map with a trainable low-rank update; the last dimension of the input is projected."""

    def __init__(self, in_features, out_features, rank=4, alpha=8.0):
        super().__init__()
        self.register_buffer("weight", torch.empty(out_features, in_features))
        nn.init.kaiming_uniform_(self.weight)
        self.lora_down = nn.Parameter(torch.randn(rank, in_features) / rank)
        self.lora_up = nn.Parameter(torch.zeros(out_features, rank))
        self.scaling = alpha / rank

    def forward(self, x):
        return _LoRAFn.apply(x, self.weight, self.lora_down, self.lora_up, self.scaling)
