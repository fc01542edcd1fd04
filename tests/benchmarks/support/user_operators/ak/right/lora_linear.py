import torch
from torch import nn


class _LoRA(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, base, a, b, scaling):
        ctx.save_for_backward(x, base, a, b)
        ctx.scaling = scaling
        return x @ base.t() + (x @ a.t()) @ b.t() * scaling

    @staticmethod
    def backward(ctx, g):
        x, base, a, b = ctx.saved_tensors
        x = x.to(g.dtype)
        down = g @ b * ctx.scaling
        gx = g @ base + down @ a
        flat = x.reshape(-1, x.shape[-1])
        ga = down.reshape(-1, down.shape[-1]).t() @ flat
        gb = g.reshape(-1, g.shape[-1]).t() @ (flat @ a.t()) * ctx.scaling
        return gx, None, ga, gb, None


class LoRALinear(nn.Module):
    """Frozen linear layer with a low-rank update; alpha / rank scales the update."""

    def __init__(self, n_in, n_out, rank=2, alpha=4.0):
        super().__init__()
        self.register_buffer("base", torch.randn(n_out, n_in))
        self.lora_a = nn.Parameter(torch.randn(rank, n_in))
        self.lora_b = nn.Parameter(torch.zeros(n_out, rank))
        self.scaling = alpha / rank

    def forward(self, x):
        return _LoRA.apply(x, self.base, self.lora_a, self.lora_b, self.scaling)
