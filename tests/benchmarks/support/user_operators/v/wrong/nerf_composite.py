import torch


class Composite(torch.autograd.Function):
    """Volume rendering along rays.

    sigma (R, S) >= 0, rgb (R, S, 3), delta (R, S) > 0  ->  colour (R, 3), opacity (R,)
    """

    @staticmethod
    def forward(sigma, rgb, delta):
        tau = sigma * delta
        T = torch.exp(tau - tau.cumsum(1))
        w = T * -torch.expm1(-tau)
        return (w[..., None] * rgb).sum(1), w.sum(1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        sigma, rgb, delta = inputs
        ctx.save_for_backward(sigma, rgb, delta)

    @staticmethod
    def backward(ctx, gc, ga):
        sigma, rgb, delta = ctx.saved_tensors
        tau = sigma * delta
        T = torch.exp(tau - tau.cumsum(1))
        w = T * -torch.expm1(-tau)
        gw = (gc[:, None] * rgb).sum(-1) + ga[:, None]
        later = (w * gw).flip(1).cumsum(1).flip(1)
        gtau = T * torch.exp(-tau) * gw - later
        return gtau * delta, w[..., None] * gc[:, None], gtau * sigma
