import torch


class SpMM(torch.autograd.Function):
    """Y = A B for A in COO format (row, col, val; n rows) and dense B (M, K)."""

    @staticmethod
    def forward(ctx, row, col, val, n, B):
        ctx.save_for_backward(row, col, val, B)
        return B.new_zeros(n, B.size(1)).index_add_(0, row, val[:, None] * B[col])

    @staticmethod
    def backward(ctx, dY):
        row, col, val, B = ctx.saved_tensors
        dval = dB = None
        if ctx.needs_input_grad[2]:
            dval = (dY[row] * B[col]).sum(-1)
        if ctx.needs_input_grad[4]:
            dB = torch.zeros_like(B).index_add(0, col, val[:, None] * dY[row])
        return None, None, dval, None, dB
