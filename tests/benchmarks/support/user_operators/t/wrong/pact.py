import torch


class PACT(torch.autograd.Function):
    # STE for the rounding, exact gradient for the clipping level (arXiv:1805.06085)

    @staticmethod
    def forward(ctx, x, alpha, k):
        ctx.save_for_backward(x, alpha)
        y = torch.clamp(x, min=0)
        y = torch.minimum(y, alpha)
        scale = (2**k - 1) / alpha
        return torch.round(y * scale) / scale

    @staticmethod
    def backward(ctx, dLdy_q):
        x, alpha = ctx.saved_tensors
        upper = x >= alpha
        inside = ~upper
        return dLdy_q * inside, (dLdy_q * upper).sum().view_as(alpha), None
