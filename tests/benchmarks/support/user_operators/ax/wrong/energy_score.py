import torch
from torch.autograd import Function


def _unit(diff):
    dist = diff.pow(2).sum(-1, keepdim=True)
    apart = dist > 0
    dist = torch.where(apart, dist, torch.ones_like(dist)).sqrt()
    return torch.where(apart, diff / dist, torch.zeros_like(diff))


class _EnergyScore(Function):
    @staticmethod
    def forward(ctx, ens, obs, fair):
        ctx.save_for_backward(ens, obs)
        ctx.fair = fair
        m = ens.shape[-2]
        pairs = m * (m - 1) if fair else m * m
        skill = (ens - obs.unsqueeze(-2)).norm(dim=-1).mean(-1)
        spread = (ens.unsqueeze(-2) - ens.unsqueeze(-3)).norm(dim=-1).sum((-2, -1)) / (2 * pairs)
        return skill - spread

    @staticmethod
    def backward(ctx, grad):
        ens, obs = ctx.saved_tensors
        m = ens.shape[-2]
        pairs = m * m
        g = grad[..., None, None]
        g_skill = g / m * _unit(ens - obs.unsqueeze(-2))
        g_spread = g / pairs * _unit(ens.unsqueeze(-2) - ens.unsqueeze(-3)).sum(-2)
        return g_skill - g_spread, -g_skill.sum(-2), None


def energy_score(ens, obs, fair=False):
    """Energy score of an ensemble of vectors, lower is better.

    Args:
        ens: ``(..., members, d)``; with ``fair`` at least two members.
        obs: ``(..., d)``, the same leading shape.
        fair: use the unbiased spread of a finite ensemble.
    """
    return _EnergyScore.apply(ens, obs, fair)
