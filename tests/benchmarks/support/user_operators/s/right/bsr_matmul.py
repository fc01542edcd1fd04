import torch
from torch import Tensor


class BlockSparseMatmul(torch.autograd.Function):
    """Multiply a block sparse matrix (COO of blocks) with a dense one.

    blocks: (nnz, b, b); block k stands in block row ``rows[k]`` and block column ``cols[k]``.
    Blocks at the same place add up.  x: (n_cols * b, m); returns (n_rows * b, m).
    """

    @staticmethod
    def forward(ctx, blocks: Tensor, rows: Tensor, cols: Tensor, x: Tensor, n_rows: int) -> Tensor:
        b = blocks.shape[-1]
        xb = x.reshape(-1, b, x.shape[-1])
        y = x.new_zeros(n_rows, b, x.shape[-1])
        y.index_add_(0, rows, blocks @ xb[cols])
        ctx.save_for_backward(blocks, rows, cols, x)
        return y.reshape(n_rows * b, -1)

    @staticmethod
    def backward(ctx, grad: Tensor):
        blocks, rows, cols, x = ctx.saved_tensors
        b = blocks.shape[-1]
        xb = x.reshape(-1, b, x.shape[-1])
        gb = grad.reshape(-1, b, grad.shape[-1])[rows]
        grad_blocks = gb @ xb[cols].mT
        grad_x = torch.zeros_like(xb).index_add(0, cols, blocks.mT @ gb)
        return grad_blocks, None, None, grad_x.reshape(x.shape), None
