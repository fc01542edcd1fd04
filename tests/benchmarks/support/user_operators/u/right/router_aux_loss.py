import torch


class RouterAuxLoss(torch.autograd.Function):
    # load balancing (Switch) plus z-loss; logits (T, E), mask (T,) True where the token is real
    @staticmethod
    def forward(ctx, logits, top_k, z_coef, mask=None):
        if mask is None:
            mask = torch.ones(logits.shape[0], dtype=torch.bool, device=logits.device)
        n = mask.sum().clamp(min=1)
        E = logits.shape[1]
        probs = logits.softmax(-1)
        hits = torch.zeros_like(probs).scatter(1, probs.topk(top_k, -1).indices, 1.0)
        frac = (hits * mask[:, None]).sum(0) / n
        mean = (probs * mask[:, None]).sum(0) / n
        lse = logits.logsumexp(-1)
        ctx.save_for_backward(logits, frac, mask)
        ctx.z_coef = z_coef
        return E * (frac * mean).sum() + z_coef * (lse**2 * mask).sum() / n

    @staticmethod
    def backward(ctx, g):
        logits, frac, mask = ctx.saved_tensors
        n = mask.sum().clamp(min=1)
        probs = logits.softmax(-1)
        lse = logits.logsumexp(-1, keepdim=True)
        gp = logits.shape[1] * frac
        gl = probs * (gp - (probs * gp).sum(-1, keepdim=True)) + 2 * ctx.z_coef * lse * probs
        return g * gl * mask[:, None] / n, None, None, None
