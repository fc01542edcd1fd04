import torch


class ReinhardGlobal(torch.autograd.Function):
    """Global photographic operator on a luminance image L > 0 of any shape.

    The image is scaled to ``key`` by its log-average first; white is the scaled luminance that
    maps to one, None for infinity.
    """

    @staticmethod
    def scaled(L, key, delta):
        log_avg = (L + delta).log().mean().exp()
        return key * L / log_avg, log_avg

    @staticmethod
    def forward(ctx, L, key=0.18, white=None, delta=1e-6):
        ctx.save_for_backward(L)
        ctx.conf = key, white, delta
        S, _ = ReinhardGlobal.scaled(L, key, delta)
        shoulder = 1.0 if white is None else 1 + S / white ** 2
        return S * shoulder / (1 + S)

    @staticmethod
    def backward(ctx, g):
        L, = ctx.saved_tensors
        key, white, delta = ctx.conf
        S, log_avg = ReinhardGlobal.scaled(L, key, delta)
        if white is None:
            dS = 1 / (1 + S) ** 2
        else:
            w2 = white ** 2
            dS = (1 + 2 * S / w2 + S * S / w2) / (1 + S) ** 2
        gS = g * dS
        gL = gS * key / log_avg
        return gL, None, None, None
