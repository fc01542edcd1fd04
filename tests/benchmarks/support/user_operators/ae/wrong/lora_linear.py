import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _LoRAFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, A, B, scaling):
        h = x @ A.t()
        ctx.save_for_backward(x, weight, A, B, h)
        ctx.scaling = scaling
        y = x @ weight.t() + scaling * (h @ B.t())
        return y if bias is None else y + bias

    @staticmethod
    @once_differentiable
    def backward(ctx, gy):
        x, weight, A, B, h = ctx.saved_tensors
        gy2 = gy.reshape(-1, gy.shape[-1])
        x2 = x.reshape(-1, x.shape[-1])
        gh = ctx.scaling * (gy2 @ B)
        gx = (gy2 @ weight + ctx.scaling * (gh @ A)).reshape(x.shape)
        gA = gh.t() @ x2
        gB = ctx.scaling * (gy2.t() @ h.reshape(-1, h.shape[-1]))
        gbias = gy2.sum(0) if ctx.needs_input_grad[2] else None
        return gx, None, gbias, gA, gB, None


class LoRALinear(nn.Module):
    """Frozen linear layer with a low-rank update, y = W x + b + (alpha / r) B A x. The bias may be trained."""

    def __init__(self, in_features, out_features, r=4, alpha=8.0, train_bias=False):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, in_features) * 0.1, requires_grad=False)
        self.bias = nn.Parameter(torch.zeros(out_features), requires_grad=train_bias)
        self.lora_A = nn.Parameter(torch.randn(r, in_features) * 0.1)
        self.lora_B = nn.Parameter(torch.zeros(out_features, r))
        self.scaling = alpha / r

    def forward(self, x):
        return _LoRAFn.apply(x, self.weight, self.bias, self.lora_A, self.lora_B, self.scaling)
