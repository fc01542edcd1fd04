import torch


def _wrap(diff, periods):
    p = diff.new_tensor(periods)
    return torch.where(p > 0, diff - p * torch.round(diff / torch.where(p > 0, p, 1.0)), diff)


class _MetadBias(torch.autograd.Function):
    @staticmethod
    def forward(ctx, cv, centers, heights, sigma, periods):
        ctx.save_for_backward(cv, centers, heights, sigma)
        ctx.periods = periods
        diff = _wrap(cv[:, None] - centers, periods)
        return torch.exp(-0.5 * (diff / sigma).pow(2).sum(-1)) @ heights

    @staticmethod
    def backward(ctx, grad):
        cv, centers, heights, sigma = ctx.saved_tensors
        diff = _wrap(cv[:, None] - centers, ctx.periods)
        hill = grad[:, None] * torch.exp(-0.5 * (diff / sigma).pow(2).sum(-1))
        slope = (hill * heights)[..., None] * (cv[:, None] - centers) / sigma**2
        return -slope.sum(1), slope.sum(0), hill.sum(0), (slope * diff).sum((0, 1)) / sigma, None


def metad_bias(cv, centers, heights, sigma, periods):
    """Metadynamics bias, a sum of Gaussian hills.

    Args:
        cv: collective variables ``(frames, d)``.
        centers: ``(hills, d)``.
        heights: ``(hills,)``.
        sigma: widths ``(d,)``, positive.
        periods: d numbers; zero for a variable that is not periodic.

    Returns:
        bias ``(frames,)``
    """
    return _MetadBias.apply(cv, centers, heights, sigma, tuple(periods))
