import torch


class _EnsembleCRPS(torch.autograd.Function):
    @staticmethod
    def forward(ctx, ens, obs, fair):
        ctx.save_for_backward(ens, obs)
        m = ens.shape[-1]
        ctx.norm = m * (m - 1) if fair else m * m
        skill = (ens - obs[..., None]).abs().mean(-1)
        spread = (ens[..., :, None] - ens[..., None, :]).abs().sum((-1, -2))
        return skill - spread / (2 * ctx.norm)

    @staticmethod
    def backward(ctx, grad):
        ens, obs = ctx.saved_tensors
        side = torch.sign(ens - obs[..., None]) / ens.shape[-1]
        rank = torch.sign(ens[..., :, None] - ens[..., None, :]).sum(-1)
        g_ens = grad[..., None] * (side - rank / ens.shape[-1] ** 2)
        return g_ens, -grad * side.sum(-1), None


def crps_ensemble(ens, obs, fair=True, reduction="mean"):
    """Continuous ranked probability score of an ensemble forecast.

    ens (..., M), obs (...). ``fair`` removes the bias of the finite ensemble and needs M > 1.
    """
    if fair and ens.shape[-1] < 2:
        raise ValueError("the fair score needs two members")
    score = _EnsembleCRPS.apply(ens, obs, fair)
    return score.mean() if reduction == "mean" else score
