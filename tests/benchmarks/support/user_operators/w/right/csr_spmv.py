import torch


class CSRMatVec(torch.autograd.Function):
    """y = A x for a CSR matrix (crow, col, values) and a dense vector x.  Duplicates are summed."""

    @staticmethod
    def forward(ctx, crow, col, values, x):
        row = torch.repeat_interleave(torch.arange(len(crow) - 1, device=crow.device), crow.diff())
        ctx.save_for_backward(row, col, values, x)
        return values.new_zeros(len(crow) - 1).index_add(0, row, values * x[col])

    @staticmethod
    def backward(ctx, gy):
        row, col, values, x = ctx.saved_tensors
        gval = gx = None
        if ctx.needs_input_grad[2]:
            gval = gy[row] * x[col]
        if ctx.needs_input_grad[3]:
            gx = torch.zeros_like(x).index_add(0, col, gy[row] * values)
        return None, None, gval, gx
