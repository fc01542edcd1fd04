import torch


class PowerSpectrum(torch.autograd.Function):
    """One-sided |rfft(window * x)|**2 / n over the last dim; window (n,) or None."""

    @staticmethod
    def forward(ctx, x, window=None):
        n = x.shape[-1]
        y = x if window is None else x * window
        spec = torch.fft.rfft(y)
        ctx.save_for_backward(x, window)
        return (spec.real ** 2 + spec.imag ** 2) / n

    @staticmethod
    def backward(ctx, grad):
        x, window = ctx.saved_tensors
        n = x.shape[-1]
        y = x if window is None else x * window
        spec = torch.fft.rfft(y)
        gy = 2.0 * torch.fft.irfft(grad * spec, n=n)
        if window is None:
            return gy, None
        g_window = None
        if ctx.needs_input_grad[1]:
            g_window = (gy * x).sum_to_size(window.shape)
        return gy * window, g_window
