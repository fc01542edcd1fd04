import torch


@torch.library.custom_op("varlen_kit_v1::softmax", mutates_args=())
def _softmax(x: torch.Tensor, cu: torch.Tensor, scale: float) -> torch.Tensor:
    seg = torch.bucketize(torch.arange(x.shape[0], device=x.device), cu[1:], right=True)
    n = cu.numel() - 1
    top = torch.full((n, x.shape[1]), float("-inf"), dtype=x.dtype, device=x.device)
    top = top.scatter_reduce(0, seg[:, None].expand_as(x), x * scale, "amax")
    e = (x * scale - top[seg]).exp()
    z = torch.zeros_like(top).index_add(0, seg, e)
    return e / z[seg]


@_softmax.register_fake
def _(x, cu, scale):
    return torch.empty_like(x)


def _setup(ctx, inputs, output):
    _, cu, ctx.scale = inputs
    ctx.save_for_backward(output, cu)


def _backward(ctx, g):
    y, cu = ctx.saved_tensors
    seg = torch.bucketize(torch.arange(y.shape[0], device=y.device), cu[1:], right=True)
    gy = g * y
    total = torch.zeros(cu.numel() - 1, y.shape[1], dtype=y.dtype, device=y.device).index_add(0, seg, gy)
    return ctx.scale * (gy - y * total[seg]), None, None


_softmax.register_autograd(_backward, setup_context=_setup)


def varlen_softmax(x, cu_seqlens, scale=1.0):
    """Softmax over each segment of packed rows. x (N, H), cu_seqlens (S + 1,) from 0 to N."""
    if x.dim() != 2:
        raise ValueError("x must be (N, H)")
    return _softmax(x, cu_seqlens, float(scale))
