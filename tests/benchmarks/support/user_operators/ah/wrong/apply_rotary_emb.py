import torch


def _rotate(x, cos, sin, interleaved, conjugate):
    half = cos.shape[-1]
    rot, rest = x[..., : 2 * half], x[..., 2 * half :]
    cos, sin = cos[: x.shape[1], None], sin[: x.shape[1], None]
    if conjugate:
        sin = -sin
    if interleaved:
        x1, x2 = rot[..., ::2], rot[..., 1::2]
        out = torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1).flatten(-2)
    else:
        x1, x2 = rot.chunk(2, -1)
        out = torch.cat([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1)
    return torch.cat([out, rest], -1)


class ApplyRotaryEmb(torch.autograd.Function):
    """
    x: (batch_size, seqlen, nheads, headdim)
    cos, sin: (seqlen_rotary, rotary_dim / 2), constants
    interleaved: if True, rotate pairs of even and odd dimensions (GPT-J style) instead
        of 1st half and 2nd half (GPT-NeoX style).
    conjugate: rotate the other way round

    rotary_dim must be <= headdim, seqlen must be <= seqlen_rotary
    """

    @staticmethod
    def forward(ctx, x, cos, sin, interleaved=False, conjugate=False):
        if cos.shape != sin.shape:
            raise ValueError("cos and sin must have the same shape")
        if 2 * cos.shape[-1] > x.shape[-1]:
            raise ValueError("rotary_dim must be <= headdim")
        if x.shape[1] > cos.shape[0]:
            raise ValueError("seqlen must be <= seqlen_rotary")
        ctx.save_for_backward(cos, sin)
        ctx.interleaved = interleaved
        ctx.conjugate = conjugate
        return _rotate(x, cos, sin, interleaved, conjugate)

    @staticmethod
    def backward(ctx, do):
        cos, sin = ctx.saved_tensors
        dx = ApplyRotaryEmb.apply(do, cos, sin, ctx.interleaved, True)
        return dx, None, None, None, None
