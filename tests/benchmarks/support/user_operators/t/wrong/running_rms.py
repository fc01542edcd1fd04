import torch
from torch import nn


class _RunningRMS(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, running, momentum, eps):
        new = (1 - momentum) * running + momentum * x.pow(2).mean(0)
        ctx.save_for_backward(x, running)
        ctx.momentum, ctx.eps = momentum, eps
        ctx.mark_non_differentiable(new)
        return x * (new + eps).rsqrt(), new

    @staticmethod
    def backward(ctx, grad, _):
        x, running = ctx.saved_tensors
        m = ctx.momentum
        inv = ((1 - m) * running + m * x.pow(2).mean(0) + ctx.eps).rsqrt()
        share = x * inv**3 * (grad * x).mean(0)
        return grad * inv - share, None, None, None


class RunningRMSNorm(nn.Module):
    """Divides (N, C) by the running root mean square, which takes in the present batch first."""

    def __init__(self, channels, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.register_buffer("running", torch.ones(channels))

    def forward(self, x):
        m = self.momentum if self.training else 0.0
        y, new = _RunningRMS.apply(x, self.running.clone(), m, self.eps)
        if self.training:
            self.running.copy_(new.detach())
        return y
