import torch


class _ScatterMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, src, index, dim_size, fill):
        e = src.shape[0]
        idx = index.view(-1, *[1] * (src.dim() - 1)).expand_as(src)
        out = src.new_full((dim_size, *src.shape[1:]), float("-inf"))
        out = out.scatter_reduce(0, idx, src, "amax")
        pos = torch.arange(e, device=src.device).view(-1, *[1] * (src.dim() - 1)).expand_as(src)
        pos = pos.masked_fill(src != out[index], e)
        arg = torch.full(out.shape, e, dtype=torch.long, device=src.device)
        arg = arg.scatter_reduce(0, idx, pos, "amin")
        out = out.masked_fill(arg == e, fill)
        ctx.save_for_backward(arg)
        ctx.src_shape = src.shape
        ctx.mark_non_differentiable(arg)
        return out, arg

    @staticmethod
    def backward(ctx, g_out, _g_arg):
        (arg,) = ctx.saved_tensors
        e = ctx.src_shape[0]
        # empty segments point behind the end
        gsrc = g_out.new_zeros(ctx.src_shape)
        gsrc = gsrc.scatter_add(0, arg.clamp(max=e - 1), g_out)
        return gsrc, None, None, None


def scatter_max(src, index, dim_size=None, fill=0.0):
    """Maximum of the rows of src (E, ...) by index (E,), and where it was found. Empty segments hold ``fill``
    and the position E."""
    dim_size = int(index.max()) + 1 if dim_size is None else dim_size
    return _ScatterMax.apply(src, index, dim_size, fill)
