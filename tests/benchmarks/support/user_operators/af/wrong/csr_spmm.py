import torch
from torch.autograd.function import once_differentiable


def _row_ids(rowptr):
    n = rowptr.numel() - 1
    return torch.repeat_interleave(torch.arange(n, device=rowptr.device), rowptr[1:] - rowptr[:-1])


class _CsrSpmm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rowptr, col, value, x):
        row = _row_ids(rowptr)
        ctx.save_for_backward(row, col, value, x)
        out = x.new_zeros(rowptr.numel() - 1, x.shape[1])
        return out.index_add_(0, row, value[:, None] * x[col])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        row, col, value, x = ctx.saved_tensors
        # SDDMM at the pattern of the matrix
        g_value = (grad[row] * x[col]).sum(-1)
        # transposed product
        g_x = torch.zeros(x.shape, device=x.device).index_add_(0, col, value[:, None] * grad[row])
        return None, None, g_value, g_x


def csr_spmm(rowptr, col, value, x):
    """Sparse (N, M) in CSR times x (M, F). Same column may occur twice in a row."""
    squeeze = x.dim() == 1
    out = _CsrSpmm.apply(rowptr, col, value, x[:, None] if squeeze else x)
    return out[:, 0] if squeeze else out
