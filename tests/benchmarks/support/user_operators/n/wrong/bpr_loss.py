import torch
import torch.nn.functional as F


class BPRLoss(torch.autograd.Function):
    """Bayesian personalised ranking on user, positive and negative item vectors.

    loss = mean_b weight_b * softplus(-(u . (i - j)) / temperature)

    user, pos: (B, D); neg: (B, K, D), K negatives per row, averaged; weight: (B,) or None
    """

    @staticmethod
    def forward(ctx, user, pos, neg, weight=None, temperature=1.0):
        margin = ((user * pos).sum(-1, keepdim=True) - torch.einsum("bd,bkd->bk", user, neg)) / temperature
        ctx.save_for_backward(user, pos, neg, weight)
        ctx.temperature = temperature
        loss = F.softplus(-margin)
        if weight is not None:
            loss = loss * weight[:, None]
        return loss.mean()

    @staticmethod
    def backward(ctx, grad_output):
        user, pos, neg, weight = ctx.saved_tensors
        t = ctx.temperature
        B, K, _ = neg.shape
        margin = ((user * pos).sum(-1, keepdim=True) - torch.einsum("bd,bkd->bk", user, neg)) / t
        coef = -torch.sigmoid(-margin) / (B * K)
        g_weight = None
        if weight is not None:
            if ctx.needs_input_grad[3]:
                g_weight = grad_output * F.softplus(-margin).sum(1) / (B * K)
            coef = coef * weight[:, None]
        coef = coef * grad_output
        g_user = coef.sum(1, keepdim=True) * pos - torch.einsum("bk,bkd->bd", coef, neg)
        g_pos = coef.sum(1, keepdim=True) * user
        g_neg = -coef.unsqueeze(-1) * user.unsqueeze(1)
        return g_user, g_pos, g_neg, g_weight, None
