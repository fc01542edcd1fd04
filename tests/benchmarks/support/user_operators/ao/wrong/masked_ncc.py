import torch


class MaskedNCC(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, mask):
        ctx.save_for_backward(a, b, mask)
        ac, bc, sa, sb = _centre(a, b, mask)
        return (ac * bc).sum(1) / (sa * sb)

    @staticmethod
    def backward(ctx, g):
        a, b, mask = ctx.saved_tensors
        ac, bc, sa, sb = _centre(a, b, mask)
        cc = ((ac * bc).sum(1) / (sa * sb))[:, None]
        s = (sa * sb)[:, None]
        ga = gb = None
        if ctx.needs_input_grad[0]:
            ga = g[:, None] * (bc / s - cc * ac / sa[:, None] ** 2)
        if ctx.needs_input_grad[0]:
            gb = g[:, None] * (ac / s - cc * bc / sb[:, None] ** 2)
        return ga, gb, None


def _centre(a, b, mask, eps=1e-12):
    m = mask.to(a.dtype)
    n = m.sum(1, keepdim=True).clamp(min=1)
    ac = (a - (a * m).sum(1, keepdim=True) / n) * m
    bc = (b - (b * m).sum(1, keepdim=True) / n) * m
    return ac, bc, (ac.pow(2).sum(1) + eps).sqrt(), (bc.pow(2).sum(1) + eps).sqrt()
