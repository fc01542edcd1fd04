import torch


class PulseCompression(torch.autograd.Function):

    @staticmethod
    def forward(ctx, rx, pulse):
        n, L = rx.shape[-1], pulse.shape[-1]
        nfft = n + L - 1
        X = torch.fft.fft(rx, nfft)
        H = torch.fft.fft(pulse, nfft)
        ctx.save_for_backward(X, H)
        ctx.dims = n, L, nfft
        return torch.fft.ifft(X * H.conj())[..., :n]

    @staticmethod
    def backward(ctx, grad):
        X, H = ctx.saved_tensors
        n, L, nfft = ctx.dims
        grad_rx = grad_pulse = None
        G = torch.fft.fft(grad, nfft)
        if ctx.needs_input_grad[0]:
            grad_rx = torch.fft.ifft(G * H)[..., :n]
        if ctx.needs_input_grad[1]:
            cross = torch.fft.ifft(G.conj() * X)[..., :L]
            grad_pulse = cross.reshape(-1, L).sum(0)
        return grad_rx, grad_pulse
