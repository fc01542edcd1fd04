import torch


class EnsembleCRPS(torch.autograd.Function):
    """CRPS of an ensemble forecast.

    members: (B, M), obs: (B,). With ``fair=True`` the spread term is the
    unbiased one, divided by M(M-1) instead of M^2 (M >= 2 needed).
    Equal values contribute no gradient to one another.
    """

    @staticmethod
    def forward(ctx, members, obs, fair=False):
        m = members.shape[1]
        if fair and m < 2:
            raise ValueError("fair CRPS needs at least two members")
        ctx.save_for_backward(members, obs)
        ctx.pairs = m * (m - 1) if fair else m * m
        skill = (members - obs[:, None]).abs().mean(1)
        spread = (members[:, :, None] - members[:, None, :]).abs().sum((1, 2))
        return skill - 0.5 * spread / ctx.pairs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        members, obs = ctx.saved_tensors
        m = members.shape[1]
        s = torch.sign(members - obs[:, None]) / m
        pair = torch.sign(members[:, :, None] - members[:, None, :]).sum(2)
        g = grad_output[:, None]
        return g * (s - pair / (m * m)), -(g * s).sum(1), None
