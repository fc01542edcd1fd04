import torch


class _ChunkedEntropy(torch.autograd.Function):

    @staticmethod
    def forward(ctx, hidden, weight, chunk):
        ent = []
        for h in hidden.split(chunk):
            logp = torch.log_softmax(h @ weight.t(), dim=-1)
            ent.append(-(logp.exp() * logp).sum(-1))
        ctx.save_for_backward(hidden, weight)
        ctx.chunk = chunk
        return torch.cat(ent)

    @staticmethod
    def backward(ctx, grad):
        hidden, weight = ctx.saved_tensors
        g_hidden = []
        g_weight = torch.zeros_like(weight)
        for h, g in zip(hidden.split(ctx.chunk), grad.split(ctx.chunk)):
            logp = torch.log_softmax(h @ weight.t(), dim=-1)
            p = logp.exp()
            ent = -(p * logp).sum(-1, keepdim=True)
            g_logits = -g[:, None] * p * (logp + ent)
            g_hidden.append(g_logits @ weight)
            g_weight = g_logits.t() @ h
        return torch.cat(g_hidden), g_weight, None


def policy_entropy(hidden, lm_head, chunk_size=1024):
    shape = hidden.shape[:-1]
    out = _ChunkedEntropy.apply(hidden.reshape(-1, hidden.shape[-1]), lm_head, chunk_size)
    return out.reshape(shape)
