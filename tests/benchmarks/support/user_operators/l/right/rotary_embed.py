import torch


class _Rotary(torch.autograd.Function):
    @staticmethod
    def forward(x, cos, sin, interleaved):
        out = torch.empty_like(x)
        if interleaved:
            x1, x2 = x[..., 0::2], x[..., 1::2]
            out[..., 0::2] = x1 * cos - x2 * sin
            out[..., 1::2] = x1 * sin + x2 * cos
        else:
            x1, x2 = x.chunk(2, dim=-1)
            half = x.shape[-1] // 2
            out[..., :half] = x1 * cos - x2 * sin
            out[..., half:] = x1 * sin + x2 * cos
        return out

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, cos, sin, interleaved = inputs
        ctx.save_for_backward(cos, sin)
        ctx.interleaved = interleaved

    @staticmethod
    def backward(ctx, g):
        # a rotation: its transpose is the rotation by the opposite angle
        cos, sin = ctx.saved_tensors
        return _Rotary.apply(g, cos, -sin, ctx.interleaved), None, None, None


def rotary_embed(x, positions, base=10000.0, interleaved=False):
    """Rotary position embedding.

    x: (..., T, D) with D even; positions: (T,) integer tensor.
    interleaved=False pairs channel i with i + D/2 (GPT-NeoX), True pairs 2i with 2i + 1 (GPT-J).

    >>> rotary_embed(torch.ones(1, 4), torch.tensor([0]))
    tensor([[1., 1., 1., 1.]])
    """
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"rotary dimension must be even, got {d}")
    freq = base ** (-torch.arange(0, d, 2, device=x.device, dtype=x.dtype) / d)
    angle = positions.to(x.dtype)[:, None] * freq[None, :]
    return _Rotary.apply(x, angle.cos(), angle.sin(), interleaved)


if __name__ == "__main__":
    import doctest
    doctest.testmod()
