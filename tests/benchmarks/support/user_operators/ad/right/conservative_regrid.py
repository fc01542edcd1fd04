import torch
from torch import Tensor


@torch.library.custom_op("regridding::conservative", mutates_args=())
def regrid(field: Tensor, row: Tensor, col: Tensor, weight: Tensor, valid: Tensor, n_dst: int) -> Tensor:
    """Apply first-order conservative weights in COO form with renormalization over missing cells.

    field (B, n_src); row, col, weight (nnz); valid (n_src) bool, False is missing (land);
    target cells with no valid source are set to zero.
    """
    w = weight * valid[col].to(weight.dtype)
    frac = torch.zeros(n_dst, dtype=weight.dtype).index_add(0, row, w)
    num = torch.zeros(field.shape[0], n_dst, dtype=field.dtype).index_add(1, row, field[:, col] * w)
    return torch.where(frac > 0, num / frac, torch.zeros_like(num))


def setup_context(ctx, inputs, output):
    field, row, col, weight, valid, n_dst = inputs
    ctx.save_for_backward(row, col, weight, valid)
    ctx.n_src, ctx.n_dst = field.shape[1], n_dst


def backward(ctx, grad):
    row, col, weight, valid = ctx.saved_tensors
    w = weight * valid[col].to(weight.dtype)
    frac = torch.zeros(ctx.n_dst, dtype=w.dtype).index_add(0, row, w)
    inv = torch.where(frac > 0, 1 / frac, torch.zeros_like(frac))
    contrib = (grad * inv)[:, row] * w
    g_field = torch.zeros(grad.shape[0], ctx.n_src, dtype=grad.dtype).index_add(1, col, contrib)
    return g_field, None, None, None, None, None


regrid.register_autograd(backward, setup_context=setup_context)
