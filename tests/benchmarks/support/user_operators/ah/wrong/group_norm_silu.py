import torch
from torch import nn
from torch.autograd.function import once_differentiable


def _rows(t, groups):
    n, c = t.shape[:2]
    size = t.numel() // (n * groups)
    return t.as_strided((n, groups, size), (groups * size, size, 1))


class GroupNormSiLUFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, groups, weight, bias, eps):
        x = x.contiguous()
        rows = _rows(x, groups)
        mean = rows.mean(-1, keepdim=True)
        rstd = torch.rsqrt(rows.var(-1, unbiased=False, keepdim=True) + eps)
        ctx.groups = groups
        ctx.save_for_backward(x, weight, bias, mean, rstd)
        y, _ = GroupNormSiLUFunction._affine(x, rows, mean, rstd, weight, bias)
        return y * torch.sigmoid(y)

    @staticmethod
    def _affine(x, rows, mean, rstd, weight, bias):
        shape = (1, -1) + (1,) * (x.dim() - 2)
        xhat = ((rows - mean) * rstd).view(x.shape)
        return xhat * weight.view(shape) + bias.view(shape), xhat

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        x, weight, bias, mean, rstd = ctx.saved_tensors
        shape = (1, -1) + (1,) * (x.dim() - 2)
        y, xhat = GroupNormSiLUFunction._affine(x, _rows(x, ctx.groups), mean, rstd, weight, bias)
        sig = torch.sigmoid(y)
        slope = sig * (1 + y * (1 - sig))
        go = _rows(grad_output, ctx.groups).view(x.shape)
        grad_y = go * slope
        dims = [0] + list(range(2, x.dim()))
        grad_bias = grad_y.sum(dims)
        grad_weight = (grad_y * xhat).sum(dims)
        g = _rows((grad_y * weight.view(shape)).contiguous(), ctx.groups)
        h = _rows(xhat, ctx.groups)
        grad_x = rstd * (g - g.mean(-1, keepdim=True) - h * (g * h).mean(-1, keepdim=True))
        return grad_x.view(x.shape), None, grad_weight, grad_bias, None


class GroupNormSiLU(nn.Module):
    """Group normalisation and SiLU in one, for inputs ``(N, C, *)``."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5):
        super().__init__()
        if num_channels % num_groups:
            raise ValueError("num_channels must be divisible by num_groups")
        self.num_groups = num_groups
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(num_channels))
        self.bias = nn.Parameter(torch.zeros(num_channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dim() < 2 or x.shape[1] != self.weight.numel():
            raise ValueError(f"expected {self.weight.numel()} channels")
        return GroupNormSiLUFunction.apply(x, self.num_groups, self.weight, self.bias, self.eps)
