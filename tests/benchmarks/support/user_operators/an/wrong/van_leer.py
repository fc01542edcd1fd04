import torch


@torch.library.custom_op("fvtools_x::van_leer", mutates_args=())
def van_leer(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    # harmonic slope limiter, 0 at extrema
    same = a * b > 0
    return torch.where(same, 2 * a * b / torch.where(same, a + b, 1.0), 0.0)


def setup(ctx, inputs, output):
    a, b = inputs
    ctx.save_for_backward(a, b)


def backward(ctx, g):
    a, b = ctx.saved_tensors
    same = a * b > 0
    den = torch.where(same, a + b, 1.0) ** 2
    k = torch.where(same, 2 * g / den, 0.0)
    return k * a * a, k * b * b


van_leer.register_autograd(backward, setup_context=setup)
