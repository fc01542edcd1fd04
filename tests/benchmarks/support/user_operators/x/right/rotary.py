import torch


def _rotate(x, cos, sin, interleaved):
    cos, sin = cos.unsqueeze(-2), sin.unsqueeze(-2)
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


class ApplyRotary(torch.autograd.Function):
    """x: (batch, seqlen, nheads, headdim), cos / sin: (seqlen, headdim / 2)"""

    @staticmethod
    def forward(ctx, x, cos, sin, interleaved=False):
        ctx.save_for_backward(cos, sin)
        ctx.interleaved = interleaved
        return _rotate(x, cos, sin, interleaved)

    @staticmethod
    def backward(ctx, do):
        cos, sin = ctx.saved_tensors
        if ctx.interleaved:
            return _rotate(do, cos, -sin, True), None, None, None
        return _rotate(do, cos, -sin, False), None, None, None
