import torch


class SpectralFilter(torch.autograd.Function):
    """irfft(response * rfft(x)) along the last dimension; x (..., N) real, response (N // 2 + 1,) complex."""

    @staticmethod
    def forward(ctx, x, response):
        n = x.size(-1)
        if response.shape != (n // 2 + 1,):
            raise ValueError(f"response must have {n // 2 + 1} bins")
        if not response.is_complex():
            raise TypeError("response must be complex")
        ctx.save_for_backward(x, response)
        return torch.fft.irfft(torch.fft.rfft(x) * response, n=n)

    @staticmethod
    def backward(ctx, grad):
        x, response = ctx.saved_tensors
        n = x.size(-1)
        spec = torch.fft.rfft(grad)
        g_x = torch.fft.irfft(spec * response.conj(), n=n)
        w = torch.full(response.shape, 2.0, dtype=x.dtype, device=x.device)
        w[0] = 1
        g_r = spec * torch.fft.rfft(x).conj() * w / n
        return g_x, g_r.reshape(-1, response.numel()).sum(0)
