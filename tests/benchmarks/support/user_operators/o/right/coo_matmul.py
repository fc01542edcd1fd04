import torch


class COOMatmul(torch.autograd.Function):
    """Sparse (COO) times dense; duplicates in the sparse operand add up. Real or complex, one dtype for both.

    rows, cols: (nnz,) int64; values: (nnz,); dense: (K, M); out: (num_rows, M)
    """

    @staticmethod
    def forward(rows, cols, values, dense, num_rows):
        if values.dtype != dense.dtype:
            raise TypeError("values and dense must share a dtype")
        out = dense.new_zeros(num_rows, dense.size(1))
        return out.index_add(0, rows, values.unsqueeze(-1) * dense[cols])

    @staticmethod
    def setup_context(ctx, inputs, output):
        rows, cols, values, dense, _ = inputs
        ctx.save_for_backward(rows, cols, values, dense)

    @staticmethod
    def backward(ctx, grad):
        rows, cols, values, dense = ctx.saved_tensors
        picked = grad[rows]
        g_values = g_dense = None
        if ctx.needs_input_grad[2]:
            g_values = (picked * dense[cols].conj()).sum(-1)
        if ctx.needs_input_grad[3]:
            g_dense = torch.zeros_like(dense).index_add(0, cols, values.conj().unsqueeze(-1) * picked)
        return None, None, g_values, g_dense, None
