import torch
from torch.autograd.function import once_differentiable


class SampledSoftmax(torch.autograd.Function):
    """Two-tower retrieval loss with negatives shared by the batch.

    user (b, d), table (n, d), pos (b,) and neg (k,) item ids, logq (n,) log sampling probabilities
    or None. A negative that is the row's positive is left out. Returns the mean loss.
    """

    @staticmethod
    def forward(ctx, user, table, pos, neg, logq=None, temperature=1.0):
        own = (user * table[pos]).sum(-1, keepdim=True) / temperature
        other = user @ table[neg].t() / temperature
        if logq is not None:
            own = own - logq[pos][:, None]
            other = other - logq[neg]
        other = other.masked_fill(neg[None] == pos[:, None], float("-inf"))
        logits = torch.cat([own, other], 1)
        prob = logits.softmax(1)
        ctx.save_for_backward(user, table, pos, neg, prob)
        ctx.temperature = temperature
        return (torch.logsumexp(logits, 1) - own[:, 0]).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        user, table, pos, neg, prob = ctx.saved_tensors
        d = prob * (g / len(user))
        d_own, d_other = d[:, :1] - g / len(user), d[:, 1:]
        d_own = d_own / ctx.temperature
        d_other = d_other / ctx.temperature
        d_user = d_own * table[pos] + d_other @ table[neg]
        d_table = torch.zeros_like(table)
        d_table.index_add_(0, pos, (d[:, :1] - g / len(user)) * user)
        d_table.index_add_(0, neg, d_other.t() @ user)
        return d_user, d_table, None, None, None, None
