import torch


def _h(n, like):
    h = torch.zeros(n, dtype=like.dtype, device=like.device)
    h[0] = 1
    h[1:(n + 1) // 2] = 2
    if n % 2 == 0:
        h[n // 2] = 1
    return h


class Envelope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        z = torch.fft.ifft(torch.fft.fft(x) * _h(x.shape[-1], x))
        ctx.save_for_backward(x)
        return z.abs()

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        h = _h(x.shape[-1], x)
        z = torch.fft.ifft(torch.fft.fft(x) * h)
        gz = g * torch.sgn(z).conj()
        return torch.fft.ifft(torch.fft.fft(gz) * h).real
