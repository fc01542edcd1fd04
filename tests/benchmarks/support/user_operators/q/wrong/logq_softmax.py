import torch


class LogQSoftmax(torch.autograd.Function):
    """Sampled softmax over in-batch items with popularity correction.

    user, item: (B, D); log_q: (B,) log sampling probabilities of the items; tau: temperature.
    Optionally ids (B,) of the items, so that accidental hits are masked.
    """

    @staticmethod
    def logits(user, item, log_q, tau, ids):
        s = user @ item.T / tau - log_q
        if ids is not None:
            hit = (ids[:, None] == ids) & ~torch.eye(len(ids), dtype=torch.bool, device=ids.device)
            s = s.masked_fill(hit, float("-inf"))
        return s

    @staticmethod
    def forward(ctx, user, item, log_q, tau=0.1, ids=None):
        if user.shape != item.shape or log_q.shape != user.shape[:1]:
            raise ValueError("shapes")
        ctx.save_for_backward(user, item, log_q, ids)
        ctx.tau = tau
        return -LogQSoftmax.logits(user, item, log_q, tau, ids).log_softmax(1).diagonal().mean()

    @staticmethod
    def backward(ctx, g):
        user, item, log_q, ids = ctx.saved_tensors
        n = user.shape[0]
        p = LogQSoftmax.logits(user, item, log_q, ctx.tau, ids).softmax(1)
        gs = g * (p - torch.eye(n, dtype=p.dtype, device=p.device)) / n
        return gs @ item / ctx.tau, gs.T @ user / ctx.tau, -gs.sum(1), None, None
