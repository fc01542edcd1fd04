import torch


class CSRMatVec(torch.autograd.Function):
    # y = A x; A in CSR: crow (n + 1), col (nnz), val (nnz)
    @staticmethod
    def forward(ctx, crow, col, val, x):
        row = torch.repeat_interleave(torch.arange(len(crow) - 1, device=col.device), crow.diff())
        ctx.save_for_backward(row, col, val, x)
        return val.new_zeros(len(crow) - 1).index_add(0, row, val * x[col])

    @staticmethod
    def backward(ctx, gy):
        row, col, val, x = ctx.saved_tensors
        gval = gy[row] * x[col]
        gx = torch.zeros_like(x).index_add(0, col, val * gy[row])
        return None, None, gval, gx
