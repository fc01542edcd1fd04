import torch


class GccPhat(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, eps):
        X, Y = torch.fft.fft(x), torch.fft.fft(y)
        S = X * Y.conj()
        ctx.save_for_backward(x, y)
        ctx.eps = eps
        return torch.fft.ifft(S / (S.abs() + eps)).real

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        n = x.shape[-1]
        X, Y = torch.fft.fft(x), torch.fft.fft(y)
        S = X * Y.conj()
        d = S.abs() + ctx.eps
        G = torch.fft.fft(g) / n
        # S / (|S| + eps), not holomorphic
        GS = G / d - S / d * (G.conj() * S).real / d ** 2
        gx = torch.fft.ifft(GS * Y).real * n
        gy = torch.fft.ifft(GS.conj() * X).real * n
        return gx, gy, None


def gcc_phat(x, y, eps=1e-2):
    return GccPhat.apply(x, y, eps)
