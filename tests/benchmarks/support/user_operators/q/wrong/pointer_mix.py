import torch


class PointerMix(torch.autograd.Function):
    """Pointer-generator distribution.

    p_gen: (B, 1), vocab: (B, V), attn: (B, S), src_ids: (B, S) int64 < V
    out[b, v] = p_gen * vocab[b, v] + (1 - p_gen) * sum of attn[b, s] over s with src_ids[b, s] == v
    """

    @staticmethod
    def forward(ctx, p_gen, vocab, attn, src_ids):
        if any(t.is_complex() for t in (p_gen, vocab, attn)):
            raise TypeError("probabilities are real")
        if p_gen.shape != (vocab.shape[0], 1):
            raise ValueError("p_gen must be (B, 1)")
        if attn.shape != src_ids.shape or attn.shape[0] != vocab.shape[0]:
            raise ValueError("attn and src_ids must be (B, S)")
        ctx.save_for_backward(p_gen, vocab, attn, src_ids)
        return (p_gen * vocab).scatter_add(1, src_ids, (1 - p_gen) * attn)

    @staticmethod
    def backward(ctx, g):
        p_gen, vocab, attn, src_ids = ctx.saved_tensors
        g_copy = g.gather(1, src_ids)
        g_pgen = (g * vocab).sum(1, keepdim=True)
        return g_pgen, g * p_gen, g_copy * (1 - p_gen), None
