import torch


@torch.library.custom_op("gan::snake", mutates_args=())
def snake(x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    b = a[:, None]
    return x + torch.sin(b * x) ** 2 / b


def setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def bwd(ctx, g):
    x, a = ctx.saved_tensors
    b = a[:, None]
    s2 = torch.sin(2 * b * x)
    ga = g * (x * s2 / b - torch.sin(b * x) ** 2 / b ** 2)
    return g * (1 + s2), ga.sum((0, 2))


snake.register_autograd(bwd, setup_context=setup)
