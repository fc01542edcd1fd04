import torch


class TokenLossWithZ(torch.autograd.Function):
    """Mean next-token cross entropy plus ``z * logsumexp^2``, as used to keep logits from drifting.

    Args:
        logits: (N, V)
        targets: (N,) token ids, `ignore` at padding
        z: weight of the z term
        ignore: id that is not scored

    Returns:
        (loss, z part); the z part is for logging and carries no gradient.
    """

    @staticmethod
    def forward(ctx, logits, targets, z=1e-4, ignore=-100):
        keep = targets != ignore
        count = keep.sum().clamp(min=1)
        lse = logits.logsumexp(-1)
        picked = logits.gather(-1, targets.masked_fill(~keep, 0).unsqueeze(-1)).squeeze(-1)
        z_part = z * (lse.square() * keep).sum() / count
        ctx.save_for_backward(logits, targets)
        ctx.z, ctx.ignore = z, ignore
        ctx.mark_non_differentiable(z_part)
        return ((lse - picked) * keep).sum() / count + z_part, z_part

    @staticmethod
    def backward(ctx, grad, _):
        logits, targets = ctx.saved_tensors
        keep = targets != ctx.ignore
        scale = (grad * keep / keep.sum().clamp(min=1)).unsqueeze(-1)
        prob = logits.softmax(-1)
        at = targets.masked_fill(~keep, 0).unsqueeze(-1)
        d = prob * scale
        d = d.scatter_add(-1, at, -scale)
        if not ctx.z:
            return d, None, None, None
        lse = logits.logsumexp(-1, keepdim=True)
        return d + 2 * ctx.z * lse * prob * scale, None, None, None
