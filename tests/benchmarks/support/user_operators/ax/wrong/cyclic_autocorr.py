import math

import torch


class CyclicAutocorrelation(torch.autograd.Function):
    """Symmetric cyclic autocorrelation of a real signal.

    ``R[tau] = 1/T * sum_t x[t] * x[t + tau] * exp(-2j * pi * alpha * (t + tau / 2))``

    :param x: real signal, shape ``(T,)``
    :param alpha: cycle frequency in cycles per sample, 0-dim tensor
    :param int max_lag: largest lag, less than T
    :returns: complex, shape ``(max_lag + 1,)``
    """

    @staticmethod
    def forward(ctx, x, alpha, max_lag):
        ctx.save_for_backward(x, alpha)
        ctx.max_lag = max_lag
        n = x.shape[0]
        time = torch.arange(n, dtype=x.dtype, device=x.device)
        lags = []
        for tau in range(max_lag + 1):
            phase = 2 * math.pi * alpha * (time[: n - tau] + tau / 2)
            prod = x[: n - tau] * x[tau:]
            lags.append(torch.complex((prod * phase.cos()).sum(), -(prod * phase.sin()).sum()) / n)
        return torch.stack(lags)

    @staticmethod
    def backward(ctx, grad):
        x, alpha = ctx.saved_tensors
        n = x.shape[0]
        time = torch.arange(n, dtype=x.dtype, device=x.device)
        g_x, g_alpha = torch.zeros_like(x), torch.zeros_like(alpha)
        pad = torch.nn.functional.pad
        for tau in range(ctx.max_lag + 1):
            when = 2 * math.pi * (time[: n - tau] + tau / 2)
            cos, sin = (alpha * when).cos(), (alpha * when).sin()
            re, im = grad[tau].real / n, grad[tau].imag / n
            g_prod = re * cos - im * sin
            head, tail = x[: n - tau], x[tau:]
            g_x = g_x + pad(g_prod * tail, (0, tau)) + pad(g_prod * head, (tau, 0))
            g_alpha = g_alpha - (head * tail * when * (re * sin + im * cos)).sum()
        return g_x, g_alpha
