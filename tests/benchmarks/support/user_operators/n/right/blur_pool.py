import torch
from torch import nn
import torch.nn.functional as F


class _BlurPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, kernel, stride, pad_mode):
        C = x.size(1)
        r = kernel.size(-1) // 2
        if r == 0:
            xp = x
        else:
            xp = F.pad(x, (r, r, r, r), mode=pad_mode)
        ctx.save_for_backward(kernel)
        ctx.args = (r, stride, pad_mode, x.shape, xp.shape)
        return F.conv2d(xp, kernel.expand(C, 1, -1, -1), stride=stride, groups=C)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gy):
        kernel, = ctx.saved_tensors
        r, stride, pad_mode, shape, padded = ctx.args
        C = shape[1]
        gp = torch.nn.grad.conv2d_input(padded, kernel.expand(C, 1, -1, -1), gy, stride=stride, groups=C)
        if pad_mode == "constant" or r == 0:
            return gp[..., r:r + shape[2], r:r + shape[3]], None, None, None
        for dim in (2, 3):
            n = shape[dim]
            core = gp.narrow(dim, r, n).clone()
            lo = gp.narrow(dim, 0, r)
            hi = gp.narrow(dim, r + n, r)
            if pad_mode == "reflect":
                core.narrow(dim, 1, r).add_(lo.flip(dim))
                core.narrow(dim, n - 1 - r, r).add_(hi.flip(dim))
            else:
                core.narrow(dim, 0, 1).add_(lo.sum(dim, keepdim=True))
                core.narrow(dim, n - 1, 1).add_(hi.sum(dim, keepdim=True))
            gp = core
        return gp, None, None, None


class BlurPool2d(nn.Module):
    """Binomial low-pass and subsampling (Zhang, 2019).

    filter_size: odd, 1 to 7
    pad_mode: "reflect", "replicate" or "constant" (zeros)
    """

    def __init__(self, filter_size=3, stride=2, pad_mode="reflect"):
        super().__init__()
        row = torch.ones(1)
        for _ in range(filter_size - 1):
            row = torch.cat([row, row.new_zeros(1)]) + torch.cat([row.new_zeros(1), row])
        k = row[:, None] * row[None, :]
        self.register_buffer("kernel", (k / k.sum())[None, None])
        self.stride, self.pad_mode = stride, pad_mode

    def forward(self, x):
        return _BlurPool.apply(x, self.kernel, self.stride, self.pad_mode)
