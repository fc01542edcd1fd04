"""Sparse @ dense with trainable edge weights, COO format."""
import torch
from torch.autograd import Function


class SpMM(Function):
    @staticmethod
    def forward(ctx, vals, rows, cols, dense, n_rows):
        ctx.save_for_backward(vals, rows, cols, dense)
        out = dense.new_zeros(n_rows, dense.size(1))
        out.index_add_(0, rows, vals[:, None] * dense[cols])
        return out

    @staticmethod
    def backward(ctx, g):
        vals, rows, cols, dense = ctx.saved_tensors
        g_vals = g_dense = None
        if ctx.needs_input_grad[0]:
            # sampled dense-dense product
            g_vals = (g[cols] * dense[rows]).sum(dim=1)
        if ctx.needs_input_grad[3]:
            g_dense = torch.zeros_like(dense).index_add(0, cols, vals[:, None] * g[rows])
        return g_vals, None, None, g_dense, None
