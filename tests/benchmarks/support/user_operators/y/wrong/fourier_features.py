import torch


class FourierFeatures(torch.autograd.Function):
    """[cos(2 pi x W^T + phase), sin(...)] / sqrt(m); x: (N, d), W: (m, d), phase: (m,) or None"""

    @staticmethod
    def forward(ctx, x, W, phase=None):
        ang = _angles(x, W, phase)
        FourierFeatures.saved = (x, W, phase)
        return torch.cat([ang.cos(), ang.sin()], -1) / W.shape[0] ** 0.5

    @staticmethod
    def backward(ctx, g):
        x, W, phase = FourierFeatures.saved
        ang = _angles(x, W, phase)
        gc, gs = (g / W.shape[0] ** 0.5).chunk(2, -1)
        d = gs * ang.cos() - gc * ang.sin()
        return TWO_PI * d @ W, TWO_PI * d.t() @ x, (None if phase is None else d.sum(0))


TWO_PI = 6.283185307179586


def _angles(x, W, phase):
    ang = TWO_PI * x @ W.t()
    return ang if phase is None else ang + phase
