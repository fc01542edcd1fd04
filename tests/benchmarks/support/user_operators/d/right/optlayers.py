"""Projections, sparse maps and matrix functions with closed form gradients."""
import numpy as np
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class SimplexProjection(Function):
    """Euclidean projection of the rows of v on {w >= 0, sum w = z}."""

    @staticmethod
    def forward(ctx, v, z: float = 1.0):
        if z <= 0:
            raise ValueError("z must be positive")
        n = v.shape[-1]
        u, _ = v.sort(dim=-1, descending=True)
        css = u.cumsum(-1) - z
        ind = torch.arange(1, n + 1, device=v.device, dtype=v.dtype)
        rho = (u - css / ind > 0).sum(-1, keepdim=True)
        theta = css.gather(-1, rho - 1) / rho
        w = (v - theta).clamp(min=0)
        ctx.save_for_backward(w)
        return w

    @staticmethod
    def backward(ctx, grad_w):
        w, = ctx.saved_tensors
        on = (w > 0).to(grad_w.dtype)
        shift = (grad_w * on).sum(-1, keepdim=True) / on.sum(-1, keepdim=True)
        return on * (grad_w - shift), None


class Sparsemax(Function):
    @staticmethod
    def forward(ctx, input, dim=-1):
        ctx.dim = dim
        x = input - input.max(dim=dim, keepdim=True)[0]
        srt, _ = x.sort(dim=dim, descending=True)
        shape = [1] * x.dim()
        shape[dim] = -1
        k = torch.arange(1, x.size(dim) + 1, dtype=x.dtype, device=x.device).view(shape)
        css = srt.cumsum(dim)
        size = (1 + k * srt > css).sum(dim=dim, keepdim=True)
        tau = (css.gather(dim, size - 1) - 1) / size
        out = torch.clamp(x - tau, min=0)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        out, = ctx.saved_tensors
        dim = ctx.dim
        supp = out > 0
        g = grad_output.masked_fill(~supp, 0)
        v = g.sum(dim=dim, keepdim=True) / supp.sum(dim=dim, keepdim=True).clamp(min=1)
        return torch.where(supp, g - v, torch.zeros_like(g)), None


class Entmax15(Function):
    """1.5-entmax (exact, by sorting)."""

    @staticmethod
    def forward(ctx, X, dim=-1):
        ctx.dim = dim
        x = (X - X.max(dim=dim, keepdim=True)[0]) / 2
        srt = x.sort(dim=dim, descending=True)[0]
        shape = [1] * x.dim()
        shape[dim] = -1
        rho = torch.arange(1, x.size(dim) + 1, dtype=x.dtype, device=x.device).view(shape)
        mean = srt.cumsum(dim) / rho
        mean_sq = (srt ** 2).cumsum(dim) / rho
        delta = (1 - rho * (mean_sq - mean ** 2)) / rho
        tau = mean - delta.clamp(min=0).sqrt()
        size = (tau <= srt).sum(dim=dim, keepdim=True)
        out = (x - tau.gather(dim, size - 1)).clamp(min=0) ** 2
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, dY):
        Y, = ctx.saved_tensors
        supp = Y > 0
        root = torch.where(supp, Y, torch.ones_like(Y)).sqrt() * supp
        dX = dY * root
        q = dX.sum(ctx.dim, keepdim=True) / root.sum(ctx.dim, keepdim=True)
        return dX - q * root, None


class SpdLogm(Function):
    """Matrix logarithm of a symmetric positive definite matrix (the symmetric part is used)."""

    @staticmethod
    def forward(ctx, A):
        assert A.dim() == 2 and A.shape[0] == A.shape[1]
        w, Q = torch.linalg.eigh((A + A.t()) / 2)
        ctx.save_for_backward(w, Q)
        return (Q * w.log()) @ Q.t()

    @staticmethod
    @once_differentiable
    def backward(ctx, G):
        w, Q = ctx.saved_tensors
        gap = w[:, None] - w[None, :]
        same = gap.abs() < 1e-8 * w.max()
        num = w.log()[:, None] - w.log()[None, :]
        K = torch.where(same, (1 / w)[:, None].expand_as(gap), num / gap.masked_fill(same, 1.0))
        inner = Q.t() @ ((G + G.t()) / 2) @ Q
        return Q @ (K * inner) @ Q.t()


class SymEigvals(Function):
    """Ascending eigenvalues of (A + A^T) / 2."""

    @staticmethod
    def forward(A):
        return torch.linalg.eigvalsh((A + A.mT) / 2)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        A, = ctx.saved_tensors
        _, V = torch.linalg.eigh((A + A.mT) / 2)
        return (V * grad.unsqueeze(-2)) @ V.mT


class MatrixExp(Function):
    """exp(A) for real or complex square A; the adjoint comes from the 2n x 2n block trick."""

    @staticmethod
    def forward(ctx, A):
        if A.shape[-1] != A.shape[-2]:
            raise ValueError("square matrices only")
        ctx.save_for_backward(A)
        return torch.matrix_exp(A)

    @staticmethod
    def backward(ctx, G):
        A, = ctx.saved_tensors
        n = A.shape[-1]
        B = A.mH
        top = torch.cat((B, G), dim=-1)
        low = torch.cat((torch.zeros_like(B), B), dim=-1)
        return torch.matrix_exp(torch.cat((top, low), dim=-2))[..., :n, n:]


class WoodburySolve(Function):
    """x = (diag(d) + U U^T)^-1 b,  d > 0 (n,), U (n, r), b (n,)."""

    @staticmethod
    def _solve(d, U, b):
        Dinv_U = U / d[:, None]
        cap = torch.eye(U.shape[1], dtype=U.dtype, device=U.device) + U.t() @ Dinv_U
        y = b / d
        return y - Dinv_U @ torch.linalg.solve(cap, U.t() @ y)

    @staticmethod
    def forward(d, U, b):
        return WoodburySolve._solve(d, U, b)

    @staticmethod
    def setup_context(ctx, inputs, output):
        d, U, b = inputs
        ctx.save_for_backward(d, U, output)

    @staticmethod
    def backward(ctx, grad_x):
        d, U, x = ctx.saved_tensors
        z = WoodburySolve._solve(d, U, grad_x)
        g_d = -z * x
        g_U = -(torch.outer(z, x @ U) + torch.outer(x, z @ U))
        return g_d, g_U, z


class LogDetSPD(Function):
    @staticmethod
    def forward(ctx, A):
        """log det of (a batch of) symmetric positive definite matrices"""
        S = (A + A.mT) / 2
        L = torch.linalg.cholesky(S)
        ctx.save_for_backward(A)
        return 2 * L.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    @staticmethod
    def backward(ctx, grad):
        A, = ctx.saved_tensors
        inv = torch.linalg.inv((A + A.mT) / 2)
        return grad[..., None, None] * inv


class IsotonicFit(Function):
    """Least squares non-decreasing fit of a vector, pool adjacent violators in numpy."""

    @staticmethod
    def forward(ctx, y):
        assert y.dim() == 1
        means, counts = [], []
        for v in y.detach().cpu().numpy():
            means.append(float(v))
            counts.append(1)
            while len(means) > 1 and means[-2] > means[-1]:
                m, c = means.pop(), counts.pop()
                means[-1] = (means[-1] * counts[-1] + m * c) / (counts[-1] + c)
                counts[-1] += c
        block = np.repeat(np.arange(len(counts)), counts)
        ctx.save_for_backward(torch.from_numpy(block), torch.tensor(counts, dtype=y.dtype))
        return torch.tensor(means, dtype=y.dtype)[torch.from_numpy(block)]

    @staticmethod
    def backward(ctx, grad):
        block, counts = ctx.saved_tensors
        total = torch.zeros_like(counts).index_add(0, block, grad)
        return (total / counts)[block]


class ProjectL2Ball(Function):
    """Project every row on the ball of the given radius."""

    @staticmethod
    def forward(ctx, x, radius=1.0):
        norm = x.norm(dim=-1, keepdim=True).clamp(min=1e-12)
        ctx.save_for_backward(x)
        ctx.radius = radius
        return torch.where(norm > radius, x * (radius / norm), x)

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        norm = x.norm(dim=-1, keepdim=True).clamp(min=1e-12)
        u = x / norm
        tangent = grad - u * (u * grad).sum(-1, keepdim=True)
        return torch.where(norm > ctx.radius, tangent * (ctx.radius / norm), grad), None
