import torch


class PhaseMask(torch.autograd.Function):
    @staticmethod
    def forward(ctx, u, amp, phi):
        ctx.save_for_backward(u, amp, phi)
        return u * torch.polar(amp, phi)

    @staticmethod
    def backward(ctx, g):
        u, amp, phi = ctx.saved_tensors
        e = torch.polar(torch.ones_like(phi), phi)
        gu = g * amp * e.conj()
        w = u * e
        gamp = (g * w.conj()).real
        gphi = amp * (g.conj() * w).imag
        return gu.sum_to_size(u.shape), gamp.sum_to_size(amp.shape), gphi.sum_to_size(phi.shape)
