import torch


class LogPowerSpectrum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, eps=1e-3):
        ctx.eps = eps
        ctx.save_for_backward(x)
        X = torch.fft.rfft(x)
        return torch.log(X.real**2 + X.imag**2 + eps)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        n = x.shape[-1]
        X = torch.fft.rfft(x)
        G = 2 * grad / (X.real**2 + X.imag**2 + ctx.eps) * X
        # irfft counts all but DC (and Nyquist) twice
        half = torch.ones(G.shape[-1], dtype=x.dtype, device=x.device)
        half[1:-1] = 0.5
        return torch.fft.irfft(G * half, n=n, norm="forward"), None
