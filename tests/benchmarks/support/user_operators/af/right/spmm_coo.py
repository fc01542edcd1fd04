import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class SpMMCoo(Function):
    """out[r] = reduce_{e: row[e] = r} val[e] * dense[col[e]];  reduce is sum or mean.

    row, col (E,) int64, val (E,), dense (M, F), num_rows int -> (num_rows, F)
    """

    @staticmethod
    def forward(ctx, row, col, val, dense, num_rows, reduce="sum"):
        msg = val[:, None] * dense[col]
        out = dense.new_zeros(num_rows, dense.shape[1]).index_add_(0, row, msg)
        count = None
        if reduce == "mean":
            count = torch.bincount(row, minlength=num_rows).clamp(min=1).to(dense.dtype)
            out = out / count[:, None]
        ctx.save_for_backward(row, col, val, dense, count)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        row, col, val, dense, count = ctx.saved_tensors
        if count is not None:
            grad_out = grad_out / count[:, None]
        g = grad_out[row]
        grad_val = grad_dense = None
        if ctx.needs_input_grad[2]:
            grad_val = (g * dense[col]).sum(1)
        if ctx.needs_input_grad[3]:
            grad_dense = torch.zeros_like(dense).index_add_(0, col, g * val[:, None])
        return None, None, grad_val, grad_dense, None, None
