"""Solvers, interpolation, quadrature and special functions."""

import math

import torch
from torch.autograd import Function


class LinearSolve(Function):
    """x = A^-1 b, or A^-T b with adjoint=True, for real square A and b of (n, m)."""

    @staticmethod
    def forward(ctx, a, b, adjoint=False):
        x = torch.linalg.solve(a.mT if adjoint else a, b)
        ctx.save_for_backward(a, x)
        ctx.adjoint = adjoint
        return x

    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        grad_b = torch.linalg.solve(a if ctx.adjoint else a.mT, g)
        grad_a = -(x @ grad_b.mT) if ctx.adjoint else -(grad_b @ x.mT)
        return grad_a, grad_b, None


class DepressedCubicRoot(Function):
    """The real root of x^3 + a x = b for a > 0 (tensors of one shape), by Newton's method."""

    @staticmethod
    def forward(ctx, a, b, iters: int = 60):
        if a.shape != b.shape:
            raise ValueError("a and b must have the same shape")
        if not bool((a > 0).all()):
            raise ValueError("a must be positive")
        x = b / (a + b.abs().pow(2.0 / 3.0))
        for _ in range(iters):
            x = x - (x**3 + a * x - b) / (3.0 * x * x + a)
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    def backward(ctx, grad_x):
        a, x = ctx.saved_tensors
        lam = grad_x / (3.0 * x * x + a)
        return -lam * x, lam, None


class LinearInterp1d(Function):
    """Piecewise linear interpolation at the fixed, increasing knots xp.

    extrapolate: "constant" holds the end values, "linear" prolongs the last pieces.
    """

    @staticmethod
    def forward(ctx, xq, xp, fp, extrapolate="constant"):
        if extrapolate not in ("constant", "linear"):
            raise ValueError(extrapolate)
        q = xq if extrapolate == "linear" else xq.clamp(xp[0], xp[-1])
        lo = (torch.searchsorted(xp, q, right=True) - 1).clamp(0, len(xp) - 2)
        t = (q - xp[lo]) / (xp[lo + 1] - xp[lo])
        ctx.save_for_backward(xq, xp, fp)
        ctx.extrapolate = extrapolate
        return fp[lo] + t * (fp[lo + 1] - fp[lo])

    @staticmethod
    def backward(ctx, grad):
        xq, xp, fp = ctx.saved_tensors
        linear = ctx.extrapolate == "linear"
        q = xq if linear else xq.clamp(xp[0], xp[-1])
        lo = (torch.searchsorted(xp, q.detach(), right=True) - 1).clamp(0, len(xp) - 2)
        width = xp[lo + 1] - xp[lo]
        t = (q - xp[lo]) / width
        live = (xq >= xp[0]) & (xq <= xp[-1]) | linear
        grad_q = grad * live * (fp[lo + 1] - fp[lo]) / width
        grad_f = torch.zeros_like(fp)
        grad_f = grad_f.index_add(0, lo.flatten(), (grad * (1.0 - t)).flatten())
        grad_f = grad_f.index_add(0, lo.flatten() + 1, (grad * t).flatten())
        return grad_q, None, grad_f, None


class CumulativeTrapezoid(Function):
    """Running integral of y (..., T) over the abscissae x (T,); the result has T - 1 entries."""

    @staticmethod
    def forward(ctx, y, x):
        if x.ndim != 1 or y.shape[-1] != x.numel():
            raise ValueError("x must be 1-d and as long as y's last axis")
        ctx.save_for_backward(y, x)
        return torch.cumsum(0.5 * (y[..., 1:] + y[..., :-1]) * x.diff(), dim=-1)

    @staticmethod
    def backward(ctx, grad):
        y, x = ctx.saved_tensors
        tail = grad.flip(-1).cumsum(-1).flip(-1)
        half = 0.5 * tail * x.diff()
        grad_y = torch.nn.functional.pad(half, (0, 1))
        grad_y = grad_y + torch.nn.functional.pad(half, (1, 0))
        step = 0.5 * tail * (y[..., 1:] + y[..., :-1])
        step = step.reshape(-1, step.shape[-1]).sum(0)
        zero = step.new_zeros(1)
        grad_x = torch.cat([zero, step]) - torch.cat([step, zero])
        return grad_y, grad_x


class SpectralFilter(Function):
    """irfft(rfft(x) * h) for x (B, n) and a complex transfer function h (n // 2 + 1,)."""

    @staticmethod
    def forward(ctx, x, h):
        n = x.shape[-1]
        ctx.save_for_backward(x, h)
        return torch.fft.irfft(torch.fft.rfft(x) * h, n=n)

    @staticmethod
    def backward(ctx, g):
        x, h = ctx.saved_tensors
        n = x.shape[-1]
        g_hat = torch.fft.rfft(g)
        grad_x = grad_h = None
        if ctx.needs_input_grad[0]:
            grad_x = torch.fft.irfft(g_hat * h.conj(), n=n)
        if ctx.needs_input_grad[1]:
            mult = torch.full(h.shape, 2.0 / n, dtype=x.dtype, device=x.device)
            mult[-1] = (1.0 if n % 2 == 0 else 2.0) / n
            mult[0] = 1.0 / n
            grad_h = mult * (g_hat * torch.fft.rfft(x).conj()).sum(0)
        return grad_x, grad_h


class TableLookup2d(Function):
    """Bilinear lookup table; rows and cols (N,) hold positions inside of it."""

    @staticmethod
    def forward(ctx, table, rows, cols):
        h, w = table.shape
        i = rows.floor().long().clamp(0, h - 2)
        j = cols.floor().long().clamp(0, w - 2)
        s, t = rows - i, cols - j
        top = table[i, j] * (1 - t) + table[i, j + 1] * t
        bottom = table[i + 1, j] * (1 - t) + table[i + 1, j + 1] * t
        ctx.save_for_backward(table, rows, cols)
        return top * (1 - s) + bottom * s

    @staticmethod
    def backward(ctx, g):
        table, rows, cols = ctx.saved_tensors
        h, w = table.shape
        i = rows.floor().long().clamp(0, h - 2)
        j = cols.floor().long().clamp(0, w - 2)
        s, t = rows - i, cols - j
        a, b = table[i, j], table[i, j + 1]
        c, d = table[i + 1, j], table[i + 1, j + 1]
        grad_rows = g * ((c - a) * (1 - t) + (d - b) * t)
        grad_cols = g * ((b - a) * (1 - s) + (d - c) * s)
        grad_table = torch.zeros(h, w, dtype=g.dtype, device=g.device)
        flat = grad_table.reshape(-1)
        flat.index_add_(0, i * w + j, g * (1 - s) * (1 - t))
        flat.index_add_(0, i * w + j + 1, g * (1 - s) * t)
        flat.index_add_(0, (i + 1) * w + j, g * s * (1 - t))
        flat.index_add_(0, (i + 1) * w + j + 1, g * s * t)
        return grad_table, grad_rows, grad_cols


class LambertW0(Function):
    """Principal branch of w exp(w) = x for x > -1/e, by Halley's iteration."""

    @staticmethod
    def forward(x, iters=40):
        w = torch.log1p(x.clamp(min=-0.36))
        for _ in range(iters):
            e = torch.exp(w)
            f = w * e - x
            w = w - f / (e * (w + 1.0) - (w + 2.0) * f / (2.0 * w + 2.0))
        return w

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        slope = torch.exp(-w) / (1.0 + w)
        return grad * slope, None


class HarmonicPhase(Function):
    """amp * cos(2 pi freq (t - epoch) + phase) for Julian dates t.

    t: (N,) data; freq, amp, phase: (K,), one row of the result for each.
    """

    @staticmethod
    def forward(ctx, t, freq, amp, phase, epoch=2451545.0):
        arg = 2.0 * math.pi * freq[:, None] * (t - epoch) + phase[:, None]
        ctx.save_for_backward(t, freq, amp, phase)
        ctx.epoch = epoch
        return amp[:, None] * torch.cos(arg)

    @staticmethod
    def backward(ctx, grad):
        t, freq, amp, phase = ctx.saved_tensors
        days = t - ctx.epoch
        arg = 2.0 * math.pi * freq[:, None] * days + phase[:, None]
        g_arg = -grad * amp[:, None] * torch.sin(arg)
        g_t = 2.0 * math.pi * (g_arg * freq[:, None]).sum(0)
        g_freq = 2.0 * math.pi * (g_arg * days).sum(1)
        g_amp = (grad * torch.cos(arg)).sum(1)
        return g_t, g_freq, g_amp, g_arg.sum(1), None


class SpdSqrt(Function):
    """Square root of a small positive definite matrix (its symmetric part is taken)."""

    @staticmethod
    def forward(ctx, a):
        lam, vec = torch.linalg.eigh(0.5 * (a + a.mT))
        if lam[0] <= 0:
            raise ValueError("matrix is not positive definite")
        root = (vec * lam.sqrt()) @ vec.mT
        ctx.save_for_backward(root)
        return root

    @staticmethod
    def backward(ctx, g):
        (root,) = ctx.saved_tensors
        n = root.shape[0]
        eye = torch.eye(n, dtype=root.dtype, device=root.device)
        # Sylvester: root Y + Y root = g
        lhs = torch.kron(root, eye) + torch.kron(eye, root)
        y = torch.linalg.solve(lhs, g.reshape(-1)).view(n, n)
        return 0.5 * (y + y.mT)


class LogDiffExp(Function):
    """log(exp(a) - exp(b)) for a > b, with broadcasting."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a + torch.log(-torch.expm1(b - a))

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        share = -1.0 / torch.expm1(b - a)
        grad_a = (grad * share).sum_to_size(a.shape)
        grad_b = (grad * (1.0 - share)).sum_to_size(b.shape)
        return grad_a, grad_b
