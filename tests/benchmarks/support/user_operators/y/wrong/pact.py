import torch


class PACT(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha, bits=4):
        ctx.save_for_backward(x, alpha)
        y = torch.minimum(x.clamp(min=0), alpha)
        step = (2**bits - 1) / alpha
        return torch.round(y * step) / step

    @staticmethod
    def backward(ctx, g):
        x, alpha = ctx.saved_tensors
        # STE inside (0, alpha), everything above belongs to alpha
        below = x < 0
        above = x >= alpha
        gx = g.masked_fill(above, 0)
        galpha = (g * above).sum().reshape(alpha.shape)
        return gx, galpha, None
