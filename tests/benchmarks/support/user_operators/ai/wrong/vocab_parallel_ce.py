import torch


class VocabParallelCE(torch.autograd.Function):
    """Token losses from logits that are split along the vocabulary.

    apply(target, starts, ignore_index, *shards): target (N,), shard i (N, V_i) covers ids
    starts[i] ... starts[i] + V_i - 1. Ignored tokens have zero loss.
    """

    @staticmethod
    def forward(ctx, target, starts, ignore_index, *shards):
        assert len(starts) == len(shards)
        top = torch.stack([s.amax(1) for s in shards]).amax(0)
        total = sum((s - top[:, None]).exp().sum(1) for s in shards)
        lse = total.log() + top
        hit = torch.zeros_like(lse)
        for start, s in zip(starts, shards):
            local = target - start
            here = (local >= 0) & (local < s.size(1))
            hit = hit + s.gather(1, local.clamp(0, s.size(1) - 1)[:, None])[:, 0] * here
        ctx.starts, ctx.ignore_index = starts, ignore_index
        ctx.save_for_backward(target, *shards)
        return (lse - hit).masked_fill(target == ignore_index, 0)

    @staticmethod
    def backward(ctx, grad):
        target, *shards = ctx.saved_tensors
        grad = grad.masked_fill(target == ctx.ignore_index, 0)[:, None]
        lse = torch.cat(shards, 1).logsumexp(1, keepdim=True)
        out = []
        for start, s in zip(ctx.starts, shards):
            local = target - start
            here = (local >= 0) & (local <= s.size(1))
            p = (s - lse).exp()
            hot = torch.zeros_like(p).scatter(1, local.clamp(0, s.size(1) - 1)[:, None], here[:, None].to(p.dtype))
            out.append(grad * (p - hot))
        return (None, None, None, *out)
