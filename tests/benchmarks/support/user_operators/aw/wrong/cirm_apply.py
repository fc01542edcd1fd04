import torch


class CIRMApply(torch.autograd.Function):
    @staticmethod
    def forward(ctx, spec, mask, k=10.0, c=0.1):
        # spec (B, F, T) complex, mask (B, 2, F, T) real
        ctx.save_for_backward(spec, mask)
        ctx.k, ctx.c = k, c
        m = k * torch.tanh(0.5 * c * mask)
        return spec * torch.complex(m[:, 0], m[:, 1])

    @staticmethod
    def backward(ctx, grad):
        spec, mask = ctx.saved_tensors
        k, c = ctx.k, ctx.c
        th = torch.tanh(0.5 * c * mask)
        m = torch.complex(k * th[:, 0], k * th[:, 1])
        gspec = grad * m.conj()
        gm = grad * spec
        gmask = torch.stack([gm.real, gm.imag], 1) * (0.5 * c * k) * (1 - th ** 2)
        return gspec, gmask, None, None
