import torch


class KalmanUpdate(torch.autograd.Function):
    """Measurement update with a scalar observation per series.

    mean (B, n), cov (B, n, n), y (B,), h (n,) observation row, r () observation variance.
    Returns the posterior mean and covariance.
    """

    @staticmethod
    def forward(ctx, mean, cov, y, h, r):
        if mean.is_complex() or cov.is_complex() or y.is_complex() or h.is_complex():
            raise TypeError("complex inputs are not supported")
        ctx.save_for_backward(mean, cov, y, h, r)
        ph = cov @ h
        s = ph @ h + r
        gain = ph / s[:, None]
        v = y - mean @ h
        hp = (h[None, None] @ cov).squeeze(1)
        return mean + gain * v[:, None], cov - gain[:, :, None] * hp[:, None, :]

    @staticmethod
    def backward(ctx, g_mean, g_cov):
        mean, cov, y, h, r = ctx.saved_tensors
        ct = cov.transpose(1, 2)
        a, b = cov @ h, ct @ h
        s = (a @ h + r)[:, None]
        v = (y - mean @ h)[:, None]
        g_cov_b = (g_cov @ b[:, :, None]).squeeze(-1)
        g_a = (g_mean * v - g_cov_b) / s
        g_b = -(g_cov.transpose(1, 2) @ a[:, :, None]).squeeze(-1) / s
        g_v = (g_mean * a).sum(1, keepdim=True) / s
        g_s = -g_v * v / s
        outer = g_a[:, :, None] * h + h[:, None] * g_b[:, None, :] + g_s[:, :, None] * (h[:, None] * h)
        g_h = (ct @ g_a[:, :, None] + cov @ g_b[:, :, None]).squeeze(-1) + g_s * (a + b) - g_v * mean
        return g_mean - g_v * h, g_cov + outer, g_v.squeeze(1), g_h.sum(0), g_s.sum()
