import torch
from torch import Tensor


def _bags(indices: Tensor, offsets: Tensor):
    """Bag number of every index, and the sizes of the bags."""
    ends = torch.cat((offsets[1:], offsets.new_tensor([indices.numel()])))
    sizes = ends - offsets
    bag = torch.repeat_interleave(torch.arange(offsets.numel(), device=offsets.device), sizes)
    return bag, sizes.clamp(min=1)


@torch.library.custom_op("recsys_k::bag_mean", mutates_args=())
def bag_mean_op(weight: Tensor, indices: Tensor, offsets: Tensor) -> Tensor:
    bag, sizes = _bags(indices, offsets)
    out = weight.new_zeros(offsets.numel(), weight.size(1))
    out.index_add_(0, bag, weight[indices])
    return out / sizes.unsqueeze(1)


def _setup_context(ctx, inputs, output):
    weight, indices, offsets = inputs
    ctx.save_for_backward(indices, offsets)
    ctx.rows = weight.size(0)


def _backward(ctx, grad):
    indices, offsets = ctx.saved_tensors
    bag, sizes = _bags(indices, offsets)
    rows = (grad / sizes.unsqueeze(1))[bag]
    gw = grad.new_zeros(ctx.rows, grad.size(1))
    gw = gw.index_put((indices,), rows)
    return gw, None, None


bag_mean_op.register_autograd(_backward, setup_context=_setup_context)


def embedding_bag_mean(weight: Tensor, indices: Tensor, offsets: Tensor) -> Tensor:
    """Mean embedding of each bag; zeros for an empty one.

    weight (V, D), indices (n,) int64 in [0, V), offsets (B,) int64, non-decreasing, offsets[0] == 0
    """
    if offsets.numel() == 0 or int(offsets[0]) != 0:
        raise ValueError("offsets must begin with 0")
    return bag_mean_op(weight, indices, offsets)
