import torch


class PowerSpectrum(torch.autograd.Function):
    """|rfft(x)|^2 / n along the last axis; n = x.shape[-1], even or odd."""

    @staticmethod
    def forward(ctx, x):
        spec = torch.fft.rfft(x, dim=-1)
        ctx.n = x.shape[-1]
        ctx.save_for_backward(x)
        return spec.abs().square() / ctx.n

    @staticmethod
    def backward(ctx, grad_power):
        (x,) = ctx.saved_tensors
        n = ctx.n
        spec = torch.fft.rfft(x, dim=-1)
        full = torch.nn.functional.pad(grad_power * spec, (0, n - spec.shape[-1]))
        # sum_k G_k exp(+2 pi i k t / n), one-sided
        return 2 * torch.fft.ifft(full, dim=-1).real
