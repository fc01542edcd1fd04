import torch
from torch import Tensor


@torch.library.custom_op("ot::sliced_w2", mutates_args=())
def sliced_w2(x: Tensor, y: Tensor, theta: Tensor) -> Tensor:
    px = (x @ theta.t()).sort(dim=0).values
    py = (y @ theta.t()).sort(dim=0).values
    return (px - py).pow(2).mean()


@sliced_w2.register_fake
def _(x, y, theta):
    return x.new_empty(())


def _save(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _grad(ctx, g):
    x, y, theta = ctx.saved_tensors
    px, ix = (x @ theta.t()).sort(dim=0)
    py, iy = (y @ theta.t()).sort(dim=0)
    d = 2 * g * (px - py) / px.numel()
    gpx = torch.zeros_like(px).scatter(0, ix, d)
    gpy = torch.zeros_like(py).scatter(0, iy, -d)
    return gpx @ theta, gpy @ theta, gpx.t() @ x + gpy.t() @ y


sliced_w2.register_autograd(_grad, setup_context=_save)
