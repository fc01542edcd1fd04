import torch


class _Sellmeier(torch.autograd.Function):
    @staticmethod
    def forward(ctx, wave, B, C, glass):
        ctx.save_for_backward(wave, B, C, glass)
        w2 = wave[:, None] ** 2
        return torch.sqrt(1 + (B[glass] * w2 / (w2 - C[glass])).sum(1))

    @staticmethod
    def backward(ctx, g):
        wave, B, C, glass = ctx.saved_tensors
        w2 = wave[:, None] ** 2
        b, c = B[glass], C[glass]
        gap = w2 - c
        n = torch.sqrt(1 + (b * w2 / gap).sum(1))
        h = (g / (2 * n))[:, None]
        g_wave = -(h * 2 * b * c * wave[:, None] / gap**2).sum(1)
        g_B = torch.zeros_like(B).index_put((glass,), h * w2 / gap, accumulate=True)
        g_C = torch.zeros_like(C).index_put((glass,), h * b * w2 / gap**2, accumulate=True)
        return g_wave, g_B, g_C, None


def sellmeier_index(wave, B, C, glass):
    """Refractive index; wave (N,) [um], B and C (catalogue, terms), glass (N,) row of the catalogue."""
    return _Sellmeier.apply(wave, B, C, glass)
