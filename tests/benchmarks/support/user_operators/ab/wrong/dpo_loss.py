import torch
import torch.nn.functional as F


class _Preference(torch.autograd.Function):
    @staticmethod
    def forward(ctx, margin, beta, smoothing, kind):
        ctx.save_for_backward(margin)
        ctx.beta, ctx.smoothing, ctx.kind = beta, smoothing, kind
        z = beta * margin
        if kind == "sigmoid":
            return -(1 - smoothing) * F.logsigmoid(z) - smoothing * F.logsigmoid(-z)
        if kind == "hinge":
            return torch.relu(1 - z)
        return (margin - 1 / (2 * beta)) ** 2

    @staticmethod
    def backward(ctx, g):
        margin, = ctx.saved_tensors
        beta, eps = ctx.beta, ctx.smoothing
        z = beta * margin
        if ctx.kind == "sigmoid":
            d = -beta * (eps * torch.sigmoid(z) + (1 - eps) * torch.sigmoid(-z))
        elif ctx.kind == "hinge":
            d = -beta * (z < 1).to(z.dtype)
        else:
            d = 2 * (margin - 1 / (2 * beta))
        return g * d, None, None, None


def preference_loss(policy_chosen, policy_rejected, ref_chosen, ref_rejected, beta=0.1, label_smoothing=0.0,
                    loss_type="sigmoid"):
    """Direct preference optimisation on sequence log-probabilities.

    Returns (losses, chosen_rewards, rejected_rewards); the rewards are detached.
    """
    if loss_type not in ("sigmoid", "hinge", "ipo"):
        raise ValueError(f"unknown loss type {loss_type}")
    margin = (policy_chosen - policy_rejected) - (ref_chosen - ref_rejected)
    losses = _Preference.apply(margin, beta, label_smoothing, loss_type)
    chosen = beta * (policy_chosen - ref_chosen).detach()
    rejected = beta * (policy_rejected - ref_rejected).detach()
    return losses, chosen, rejected
