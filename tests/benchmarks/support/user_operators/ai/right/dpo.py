import torch
import torch.nn.functional as F


class _Preference(torch.autograd.Function):
    """chosen/rejected log ratios (B,) -> loss (B,), reward of chosen (B,), reward of rejected (B,)"""

    @staticmethod
    def forward(ctx, chosen, rejected, beta, smoothing, kind):
        ctx.save_for_backward(chosen, rejected)
        ctx.hp = (beta, smoothing, kind)
        h = chosen - rejected
        if kind == "sigmoid":
            loss = -(1 - smoothing) * F.logsigmoid(beta * h) - smoothing * F.logsigmoid(-beta * h)
        elif kind == "hinge":
            loss = torch.relu(1 - beta * h)
        elif kind == "ipo":
            loss = (h - 1 / (2 * beta)) ** 2
        else:
            raise ValueError(f"no loss {kind!r}")
        return loss, beta * chosen, beta * rejected

    @staticmethod
    def backward(ctx, g_loss, g_c, g_r):
        chosen, rejected = ctx.saved_tensors
        beta, smoothing, kind = ctx.hp
        h = chosen - rejected
        if kind == "sigmoid":
            d = beta * (smoothing * torch.sigmoid(beta * h) - (1 - smoothing) * torch.sigmoid(-beta * h))
        elif kind == "hinge":
            d = -beta * (beta * h < 1).to(h.dtype)
        else:
            d = 2 * (h - 1 / (2 * beta))
        d = g_loss * d
        return d + beta * g_c, beta * g_r - d, None, None, None


def dpo_loss(policy_chosen, policy_rejected, ref_chosen, ref_rejected, beta=0.1, label_smoothing=0.0,
             loss_type="sigmoid", reference_free=False):
    if reference_free:
        ref_chosen, ref_rejected = torch.zeros_like(ref_chosen), torch.zeros_like(ref_rejected)
    return _Preference.apply(policy_chosen - ref_chosen, policy_rejected - ref_rejected, beta, label_smoothing, loss_type)
