import torch


class InterestPool(torch.autograd.Function):
    """Sum of history embeddings weighted by an unnormalised target match (Deep Interest Network).

    target (B, D), history (B, T, D), lengths (B,) int64 or None
    """

    @staticmethod
    def forward(ctx, target, history, lengths=None):
        b, t, d = history.shape
        if target.shape != (b, d):
            raise ValueError("target must be (B, D)")
        if target.is_complex() or history.is_complex():
            raise TypeError("real embeddings only")
        ctx.save_for_backward(target, history, lengths)
        a = torch.sigmoid(torch.einsum("bd,btd->bt", target, history))
        if lengths is not None:
            a = a * (torch.arange(t, device=lengths.device) < lengths[:, None])
        return torch.einsum("bt,btd->bd", a, history)

    @staticmethod
    def backward(ctx, g):
        target, history, lengths = ctx.saved_tensors
        a = torch.sigmoid(torch.einsum("bd,btd->bt", target, history))
        da = a * (1 - a)
        if lengths is not None:
            valid = torch.arange(history.shape[1], device=lengths.device) < lengths[:, None]
            a, da = a * valid, da * valid
        g_score = torch.einsum("bd,btd->bt", g, history) * da
        g_target = torch.einsum("bt,btd->bd", g_score, history)
        g_history = a.unsqueeze(-1) * g.unsqueeze(1) + g_score.unsqueeze(-1) * target.unsqueeze(1)
        return g_target, g_history, None
