import torch
from torch.autograd import Function


def _toeplitz(column):
    n = column.shape[-1]
    i = torch.arange(n, device=column.device)
    return column[..., (i[:, None] - i[None, :]).abs()]


class SymToeplitzMatmul(Function):
    @staticmethod
    def forward(ctx, column, rhs):
        ctx.save_for_backward(column, rhs)
        ctx.vector = rhs.dim() == 1
        mat = rhs.unsqueeze(-1) if ctx.vector else rhs
        res = _toeplitz(column) @ mat
        return res.squeeze(-1) if ctx.vector else res

    @staticmethod
    def backward(ctx, grad_output):
        column, rhs = ctx.saved_tensors
        column_grad = rhs_grad = None
        grad = grad_output.unsqueeze(-1) if ctx.vector else grad_output
        mat = rhs.unsqueeze(-1) if ctx.vector else rhs
        if ctx.needs_input_grad[0]:
            outer = grad @ mat.mT
            lags = [outer.diagonal(0, -2, -1).sum(-1)]
            for k in range(1, column.shape[-1]):
                lags.append((outer.diagonal(k, -2, -1) + outer.diagonal(-k, -2, -1)).sum(-1))
            column_grad = torch.stack(lags, -1)
            extra = column_grad.dim() - column.dim()
            if extra > 0:
                column_grad = column_grad.sum(tuple(range(extra)))
        if ctx.needs_input_grad[1]:
            rhs_grad = _toeplitz(column) @ grad
            if ctx.vector:
                rhs_grad = rhs_grad.squeeze(-1)
        return column_grad, rhs_grad


def sym_toeplitz_matmul(column: torch.Tensor, rhs: torch.Tensor) -> torch.Tensor:
    """Product of a symmetric Toeplitz matrix with a vector or with (batches of) matrices.

    Args:
        column: first column of the matrix, ``(n,)``
        rhs: ``(n,)``, ``(n, m)`` or ``(b, n, m)``
    """
    if column.dim() != 1:
        raise RuntimeError("column must be one dimensional")
    n = rhs.shape[0] if rhs.dim() == 1 else rhs.shape[-2]
    if n != column.shape[-1]:
        raise RuntimeError(f"size mismatch: {column.shape[-1]} and {n}")
    return SymToeplitzMatmul.apply(column, rhs)
