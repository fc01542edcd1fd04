import torch
from torch.autograd.function import once_differentiable


class CooSpMM(torch.autograd.Function):
    """Sparse @ dense with the sparse matrix in coordinate form.

    row, col: (E,) long, values: (E,), dense: (M, F) -> (num_rows, F).
    Repeated coordinates add up.
    """

    @staticmethod
    def forward(ctx, row, col, values, dense, num_rows: int):
        ctx.save_for_backward(row, col, values, dense)
        out = dense.new_zeros(num_rows, dense.shape[1])
        return out.index_add_(0, row, values[:, None] * dense[col])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        row, col, values, dense = ctx.saved_tensors
        picked = grad_out[row]
        grad_values = (picked * dense[col]).sum(1)
        grad_dense = torch.zeros(dense.shape, device=dense.device)
        grad_dense.index_add_(0, col, (values[:, None] * picked).float())
        return None, None, grad_values, grad_dense, None
