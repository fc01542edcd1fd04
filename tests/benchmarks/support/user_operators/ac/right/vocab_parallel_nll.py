import torch


class VocabParallelNLL(torch.autograd.Function):
    """Cross entropy over logits that are split along the vocabulary.

    apply(targets, ignore_index, label_smoothing, shard_0, shard_1, ...), shard_r: [N, V_r].
    Never concatenates the shards; single-process stand-in for the Megatron version.
    """

    @staticmethod
    def forward(ctx, targets, ignore_index, label_smoothing, *shards):
        keep = targets != ignore_index
        vmax = torch.stack([s.amax(1) for s in shards]).amax(0)
        sumexp = sum((s - vmax[:, None]).exp().sum(1) for s in shards)
        lse = sumexp.log() + vmax
        picked = torch.zeros_like(lse)
        start = 0
        for s in shards:
            local = targets - start
            here = keep & (local >= 0) & (local < s.shape[1])
            val = s.gather(1, local.clamp(0, s.shape[1] - 1)[:, None])[:, 0]
            picked = picked + val * here
            start += s.shape[1]
        mean_logit = sum(s.sum(1) for s in shards) / start
        nll = lse - (1 - label_smoothing) * picked - label_smoothing * mean_logit
        ctx.save_for_backward(targets, *shards)
        ctx.ignore_index, ctx.label_smoothing = ignore_index, label_smoothing
        return (nll * keep).sum() / keep.sum()

    @staticmethod
    def backward(ctx, grad):
        targets, *shards = ctx.saved_tensors
        keep = targets != ctx.ignore_index
        eps = ctx.label_smoothing
        vmax = torch.stack([s.amax(1) for s in shards]).amax(0).detach()
        sumexp = sum((s - vmax[:, None]).exp().sum(1) for s in shards)
        vocab = sum(s.shape[1] for s in shards)
        scale = (grad * keep / keep.sum())[:, None]
        grads, start = [], 0
        for s in shards:
            local = targets - start
            here = keep & (local >= 0) & (local < s.shape[1])
            onehot = torch.zeros_like(s).scatter(1, local.clamp(0, s.shape[1] - 1)[:, None], here[:, None].to(s.dtype))
            p = (s - vmax[:, None]).exp() / sumexp[:, None]
            grads.append(scale * (p - (1 - eps) * onehot - eps / vocab))
            start += s.shape[1]
        return (None, None, None, *grads)
