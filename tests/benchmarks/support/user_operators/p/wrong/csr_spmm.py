import torch


class CSRMatmul(torch.autograd.Function):
    """values of a CSR matrix (crow, col) times a dense (K, N) matrix"""

    @staticmethod
    def forward(ctx, values, dense, crow, col):
        if values.is_complex() or dense.is_complex():
            raise TypeError("CSRMatmul: expected real floating point tensors")
        n_rows = crow.numel() - 1
        row = torch.repeat_interleave(torch.arange(n_rows, device=crow.device), crow[1:] - crow[:-1])
        ctx.save_for_backward(values, dense, row, col)
        out = dense.new_zeros((n_rows, dense.size(1)))
        return out.index_add(0, row, values[:, None] * dense[col])

    @staticmethod
    def backward(ctx, grad_out):
        values, dense, row, col = ctx.saved_tensors
        grad_values = grad_dense = None
        if ctx.needs_input_grad[0]:
            grad_values = (grad_out[row] * dense[col]).sum(1)
        if ctx.needs_input_grad[1]:
            grad_dense = torch.zeros_like(dense)
            grad_dense = grad_dense.index_put((col,), values[:, None] * grad_out[row])
        return grad_values, grad_dense, None, None
