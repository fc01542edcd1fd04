import torch


def _lags(n, device):
    t = torch.arange(n, device=device)[:, None]
    m = torch.arange(n, device=device)[None, :]
    m = torch.where(m > (n - 1) // 2, m - n, m)
    ok = m.abs() <= torch.minimum(t, n - 1 - t)
    return torch.where(ok, t + m, 0), torch.where(ok, t - m, 0), ok


class WignerVille(torch.autograd.Function):
    """Discrete Wigner-Ville distribution.

    :param x: complex (analytic) signal, shape ``(n,)``
    :returns: real time-frequency plane of shape ``(n, n)``, time first
    """

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ahead, behind, ok = _lags(x.shape[0], x.device)
        kernel = x[ahead] * x[behind].conj() * ok
        return torch.fft.fft(kernel, dim=-1).real

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        n = x.shape[0]
        ahead, behind, ok = _lags(n, x.device)
        gk = torch.fft.ifft(grad, dim=-1, norm="forward") * ok
        ga = gk * x[behind]
        gb = gk * x[ahead]
        out = torch.zeros_like(x)
        out = out.index_add(0, ahead.reshape(-1), ga.reshape(-1))
        return out.index_add(0, behind.reshape(-1), gb.reshape(-1))
