"""Products and solves with structured matrices that are never built in full."""

from typing import Tuple

import torch
import torch.nn.functional as F


class BlockDiagonalMul(torch.autograd.Function):
    """blocks (K, m, n) on the diagonal, x (B, K * n) -> (B, K * m)."""

    @staticmethod
    def forward(ctx, blocks: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        k, m, n = blocks.shape
        assert x.dim() == 2 and x.size(1) == k * n, "x does not fit the blocks"
        ctx.save_for_backward(blocks, x)
        y = torch.einsum("kij,bkj->bki", blocks, x.reshape(-1, k, n))
        return y.reshape(-1, k * m)

    @staticmethod
    def backward(ctx, grad_y: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        blocks, x = ctx.saved_tensors
        k, m, n = blocks.shape
        gy = grad_y.reshape(-1, k, m)
        grad_blocks = torch.einsum("bki,bkj->kij", gy, x.reshape(-1, k, n))
        grad_x = torch.einsum("kij,bkj->bki", blocks, gy)
        return grad_blocks, grad_x.reshape(x.shape)


class BandedMul(torch.autograd.Function):
    """bands (2w+1, n): bands[o, i] multiplies x[i + o - w]; x is (B, n)."""

    @staticmethod
    def forward(ctx, bands, x):
        if bands.size(0) % 2 == 0:
            raise ValueError("an odd number of bands is needed")
        n, w = x.size(1), bands.size(0) // 2
        assert bands.shape[1:] == x.shape[1:]
        padded = F.pad(x, (w, w))
        y = torch.zeros_like(x)
        for o in range(2 * w + 1):
            y += bands[o] * padded[:, o : o + n]
        ctx.save_for_backward(bands, x)
        return y

    @staticmethod
    def backward(ctx, g):
        bands, x = ctx.saved_tensors
        n, width = x.size(1), bands.size(0)
        w = width // 2
        padded = F.pad(x, (w, w))
        grad_bands = torch.zeros_like(bands)
        grad_padded = torch.zeros_like(padded)
        for o in range(width - 1):
            grad_bands[o] = (g * padded[:, o : o + n]).sum(0)
            grad_padded[:, o : o + n] += g * bands[o]
        return grad_bands, grad_padded[:, w : w + n]


def _toeplitz_index(n, device):
    i = torch.arange(n, device=device)
    return i[:, None] - i[None, :] + n - 1


class ToeplitzMul(torch.autograd.Function):
    """T(v) @ x with v the 2n-1 diagonals from the upper right to the lower left."""

    @staticmethod
    def forward(ctx, v, x):
        n = x.size(0)
        if x.dim() != 2 or v.shape != (2 * n - 1,):
            raise ValueError("expected x (n, m) and v (2n - 1,)")
        ctx.save_for_backward(v, x)
        return v[_toeplitz_index(n, x.device)] @ x

    @staticmethod
    def backward(ctx, grad):
        v, x = ctx.saved_tensors
        idx = _toeplitz_index(x.size(0), x.device)
        dense = grad @ x.t()
        grad_v = torch.zeros_like(v).index_put((idx,), dense)
        grad_x = v[idx].t() @ grad
        return grad_v, grad_x


class CirculantMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, c, x):
        n = c.shape[-1]
        if c.dim() != 1 or x.dim() != 2 or x.size(1) != n:
            raise ValueError("expected c (n,) and x (batch, n)")
        ctx.save_for_backward(c, x)
        return torch.fft.irfft(torch.fft.rfft(c) * torch.fft.rfft(x), n=n)

    @staticmethod
    def backward(ctx, grad_out):
        c, x = ctx.saved_tensors
        n = c.shape[-1]
        cf, xf, gf = torch.fft.rfft(c), torch.fft.rfft(x), torch.fft.rfft(grad_out)
        grad_x = torch.fft.irfft(gf * cf.conj(), n=n)
        grad_c = torch.fft.irfft((gf * xf).sum(0), n=n)
        return grad_c, grad_x


class LowRankPlusDiag(torch.autograd.Function):
    """(U V^T + diag(d)) x."""

    @staticmethod
    def forward(U, V, d, x):
        assert x.dim() == 2 and d.dim() == 1
        return U @ (V.t() @ x) + d[:, None] * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, gy):
        U, V, d, x = ctx.saved_tensors
        gU = gy @ (x.t() @ V)
        gV = x @ (gy.t() @ U)
        gd = (gy * x).sum(1)
        gx = V @ (U.t() @ gy) + d[:, None] * gy
        return gV, gU, gd, gx


class KroneckerApply(torch.autograd.Function):
    """Rows of x, (batch, q * t), times (A kron B)^T; A (p, q), B (s, t)."""

    @staticmethod
    def forward(ctx, A, B, x, scale=1.0):
        q, t = A.size(1), B.size(1)
        if x.dim() != 2 or x.size(1) != q * t:
            raise ValueError("x must be 2-d with A.size(1) * B.size(1) columns")
        X = x.reshape(-1, q, t)
        ctx.save_for_backward(A, B, x)
        ctx.scale = scale
        return (scale * (A @ X @ B.t())).flatten(1)

    @staticmethod
    def backward(ctx, grad):
        A, B, x = ctx.saved_tensors
        G = ctx.scale * grad.reshape(-1, A.size(0), B.size(0))
        X = x.reshape(-1, A.size(1), B.size(1))
        grad_A = (G @ B @ X.transpose(1, 2)).sum(0)
        grad_B = (G.transpose(1, 2) @ A @ X).sum(0)
        grad_x = (A.t() @ G @ B).flatten(1)
        return grad_A, grad_B, grad_x


def _thomas(lower, diag, upper, rhs):
    """Solve a tridiagonal system; lower/upper have one entry less than diag."""
    n = diag.numel()
    cp, dp = [], []
    for k in range(n):
        den = diag[k] if k == 0 else diag[k] - lower[k - 1] * cp[k - 1]
        num = rhs[k] if k == 0 else rhs[k] - lower[k - 1] * dp[k - 1]
        if k < n - 1:
            cp.append(upper[k] / den)
        dp.append(num / den)
    out = [dp[-1]]
    for k in range(n - 2, -1, -1):
        out.append(dp[k] - cp[k] * out[-1])
    return torch.stack(out[::-1])


class TridiagonalSolve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, lower, diag, upper, rhs):
        n = diag.numel()
        if lower.shape != (n - 1,) or upper.shape != (n - 1,) or rhs.shape != (n,):
            raise ValueError("off-diagonals need n - 1 entries, the right side n")
        sol = _thomas(lower, diag, upper, rhs)
        ctx.save_for_backward(lower, diag, upper, sol)
        return sol

    @staticmethod
    def backward(ctx, grad_sol):
        lower, diag, upper, sol = ctx.saved_tensors
        lam = _thomas(lower, diag, upper, grad_sol)
        return -lam[1:] * sol[:-1], -lam * sol, -lam[:-1] * sol[1:], lam


class CooMatVec(torch.autograd.Function):
    """y[row] += val * x[col] for a sparse matrix in coordinate form."""

    @staticmethod
    def forward(ctx, val, row, col, x, n_rows):
        if not (val.shape == row.shape == col.shape):
            raise ValueError("val, row and col must have the same length")
        ctx.save_for_backward(val, row, col, x)
        y = x.new_zeros(n_rows)
        return y.index_add_(0, row, val * x[col])

    @staticmethod
    def backward(ctx, grad_y):
        val, row, col, x = ctx.saved_tensors
        grad_val = grad_x = None
        picked = grad_y[row]
        if ctx.needs_input_grad[0]:
            grad_val = picked * x[col]
        if ctx.needs_input_grad[3]:
            grad_x = torch.zeros(x.shape, device=x.device)
            grad_x.index_add_(0, col, val * picked)
        return grad_val, None, None, grad_x, None


class PackedSymQuadForm(torch.autograd.Function):
    """x^T S x where p holds the upper triangle of the symmetric S, row by row."""

    @staticmethod
    def forward(ctx, p, x):
        n = x.size(-1)
        if p.shape != (n * (n + 1) // 2,):
            raise ValueError("p does not hold an upper triangle for this x")
        i, j = torch.triu_indices(n, n, device=x.device)
        weight = torch.where(i == j, 1.0, 2.0).to(x.dtype)
        ctx.save_for_backward(p, x)
        return (p * weight * x[:, i] * x[:, j]).sum(-1)

    @staticmethod
    def backward(ctx, grad_q):
        p, x = ctx.saved_tensors
        n = x.size(-1)
        i, j = torch.triu_indices(n, n, device=x.device)
        weight = torch.where(i == j, 1.0, 2.0).to(x.dtype)
        grad_p = (grad_q[:, None] * x[:, i] * x[:, j]).sum(0)
        half = x.new_zeros(n, n).index_put((i, j), p * weight)
        grad_x = grad_q[:, None] * (x @ (half + half.t()))
        return grad_p, grad_x


class HouseholderReflect(torch.autograd.Function):
    """Reflect every row of x at the plane normal to v."""

    @staticmethod
    def forward(ctx, v, x):
        ctx.save_for_backward(v, x)
        return x - 2.0 * torch.outer(x @ v, v) / v.dot(v)

    @staticmethod
    def backward(ctx, g):
        v, x = ctx.saved_tensors
        s = v.dot(v)
        a, b = x @ v, g @ v
        grad_v = -2.0 / s * (b @ x + a @ g)
        grad_v = grad_v + 4.0 / s * a.dot(b) * v
        grad_x = g - 2.0 * torch.outer(b, v) / s
        return grad_v, grad_x
