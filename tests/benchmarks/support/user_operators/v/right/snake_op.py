import torch
from torch import Tensor, nn


@torch.library.custom_op("audioact::snake", mutates_args=())
def snake(x: Tensor, alpha: Tensor) -> Tensor:
    a = alpha[:, None]
    return x + torch.sin(a * x) ** 2 / a


@snake.register_fake
def _(x, alpha):
    return torch.empty_like(x)


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, g):
    x, alpha = ctx.saved_tensors
    a = alpha[:, None]
    s2 = torch.sin(2 * a * x)
    gx = g * (1 + s2)
    ga = g * (x * s2 / a - torch.sin(a * x) ** 2 / a ** 2)
    return gx, ga.sum((0, 2))


snake.register_autograd(_backward, setup_context=_setup)


class Snake(nn.Module):

    def __init__(self, channels, alpha=1.0):
        super().__init__()
        self.alpha = nn.Parameter(torch.full((channels,), float(alpha)))

    def forward(self, x):
        return snake(x, self.alpha)
