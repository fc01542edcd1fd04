import torch


class PhaseCorrelation(torch.autograd.Function):
    """Phase correlation of two real signals along the last axis.

    a, b: (..., n). Returns (..., n), peak at the circular displacement of a against b.
    Spectra must not vanish.
    """

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        C = torch.fft.rfft(a) * torch.fft.rfft(b).conj()
        return torch.fft.irfft(C / C.abs(), n=a.shape[-1])

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        n = a.shape[-1]
        A, B = torch.fft.rfft(a), torch.fft.rfft(b)
        C = A * B.conj()
        mag = C.abs()
        P = C / mag
        # adjoint of irfft: all bins but DC (and Nyquist for even n) stand for two
        two = torch.full((n // 2 + 1,), 2.0, dtype=grad.dtype, device=grad.device)
        two[0] = 1
        if n % 2 == 0:
            two[-1] = 1
        gP = torch.fft.rfft(grad) * two / n
        gC = (gP - P * (P.conj() * gP).real) / mag
        gA, gB = gC * B, gC.conj() * A
        # adjoint of rfft
        ga = torch.fft.ifft(gA, n=n).real * n
        gb = torch.fft.ifft(gB, n=n).real * n
        return ga, gb
