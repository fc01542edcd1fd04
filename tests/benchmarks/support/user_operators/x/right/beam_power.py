import torch


class BeamPower(torch.autograd.Function):
    """Output power |w^H x_k|^2 of a beamformer.

    w: (M,) complex weights, x: (K, M) complex snapshots -> (K,) real
    """

    @staticmethod
    def forward(ctx, w, x):
        s = x @ w.conj()
        ctx.save_for_backward(w, x)
        return s.real**2 + s.imag**2

    @staticmethod
    def backward(ctx, g):
        w, x = ctx.saved_tensors
        s = x @ w.conj()
        gs = 2 * g * s
        gw = gx = None
        if ctx.needs_input_grad[0]:
            gw = gs.conj() @ x
        if ctx.needs_input_grad[1]:
            gx = gs[:, None] * w
        return gw, gx
