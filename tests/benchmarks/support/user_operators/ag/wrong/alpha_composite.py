import torch
from torch.autograd import Function

# front-to-back alpha compositing along rays

class _Composite(Function):

    @staticmethod
    def _transmittance(alphas):
        T = [torch.ones_like(alphas[:, 0])]
        for i in range(alphas.shape[1]):
            T.append(T[-1] * (1 - alphas[:, i]))
        return torch.stack(T, 1)

    @staticmethod
    def forward(ctx, alphas, rgb, background):
        trans = _Composite._transmittance(alphas)
        weights = alphas * trans[:, :-1]
        color = (weights.unsqueeze(-1) * rgb).sum(1)
        if background is not None:
            color = color + trans[:, -1:] * background
        ctx.save_for_backward(alphas, rgb, background)
        return color

    @staticmethod
    def backward(ctx, g):
        alphas, rgb, background = ctx.saved_tensors
        trans = _Composite._transmittance(alphas)
        S = alphas.shape[1]
        behind = torch.zeros_like(rgb[:, 0])
        g_bg = None
        if background is not None:
            behind = behind + background
            g_bg = (trans[:, -1:] * g).sum(0)
        ga, gc = [None] * S, [None] * S
        for i in range(S - 1, -1, -1):
            a = alphas[:, i].unsqueeze(-1)
            T = trans[:, i + 1] / (1 - alphas[:, i])
            ga[i] = T * (g * (rgb[:, i] - behind)).sum(-1)
            gc[i] = (T * alphas[:, i]).unsqueeze(-1) * g
            behind = a * rgb[:, i] + (1 - a) * behind
        return torch.stack(ga, 1), torch.stack(gc, 1), g_bg


def alpha_composite(alphas, rgb, background=None):
    """alphas (R, S) in [0, 1], rgb (R, S, 3), background (3,) or None -> (R, 3)"""
    assert alphas.shape == rgb.shape[:2]
    return _Composite.apply(alphas, rgb, background)
