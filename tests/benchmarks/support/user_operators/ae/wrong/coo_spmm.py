import torch
from torch import Tensor


@torch.library.custom_op("graph_ops_ae_v2::coo_spmm", mutates_args=())
def coo_spmm(row: Tensor, col: Tensor, value: Tensor, dense: Tensor, num_rows: int) -> Tensor:
    """out[row[e]] += value[e] * dense[col[e]]; row, col, value: (E,), dense: (M, D) -> (num_rows, D)

    Edges may repeat and need no order.
    """
    out = dense.new_zeros(num_rows, dense.shape[1])
    return out.index_add(0, row, value[:, None] * dense[col])


@coo_spmm.register_fake
def _(row, col, value, dense, num_rows):
    return dense.new_empty(num_rows, dense.shape[1])


def _setup(ctx, inputs, output):
    row, col, value, dense, _ = inputs
    ctx.save_for_backward(row, col, value, dense)


def _backward(ctx, grad):
    row, col, value, dense = ctx.saved_tensors
    g_value = g_dense = None
    if ctx.needs_input_grad[2]:
        g_value = (grad[row] * dense[col]).sum(-1)
    if ctx.needs_input_grad[3]:
        g_dense = torch.zeros_like(dense)
        g_dense = g_dense.index_put((col,), value[:, None] * grad[row])
    return None, None, g_value, g_dense, None


coo_spmm.register_autograd(_backward, setup_context=_setup)
