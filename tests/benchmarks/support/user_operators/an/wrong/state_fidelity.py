import torch


class Fidelity(torch.autograd.Function):
    @staticmethod
    def forward(ctx, psi, phi):
        ctx.save_for_backward(psi, phi)
        ov = (psi.conj() * phi).sum(-1)
        return ov.real ** 2 + ov.imag ** 2

    @staticmethod
    def backward(ctx, g):
        psi, phi = ctx.saved_tensors
        ov = (psi.conj() * phi).sum(-1)
        w = 2 * (g * ov)[..., None]
        return w * phi, w * psi
