import torch


class SpectralFilter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return torch.fft.irfft(torch.fft.rfft(x) * w, n=x.shape[-1])

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        n = x.shape[-1]
        G = torch.fft.rfft(g)
        gx = torch.fft.irfft(G * w.conj(), n=n)
        twice = torch.ones(n // 2 + 1, dtype=x.dtype, device=x.device)
        twice[1:] = 2  # bins that stand for a conjugate pair
        gw = (torch.fft.rfft(x).conj() * G).reshape(-1, n // 2 + 1).sum(0) * twice / n
        return gx, gw
