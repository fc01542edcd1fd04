import torch


class PointerMix(torch.autograd.Function):
    # pointer-generator: p_gen (B,1), vocab (B,V), attn (B,S), src (B,S) ids in the extended vocabulary
    @staticmethod
    def forward(ctx, p_gen, vocab, attn, src, n_oov):
        ctx.save_for_backward(p_gen, vocab, attn, src)
        full = torch.cat([p_gen * vocab, vocab.new_zeros(vocab.shape[0], n_oov)], 1)
        return full.scatter_add(1, src, (1 - p_gen) * attn)

    @staticmethod
    def backward(ctx, grad):
        p_gen, vocab, attn, src = ctx.saved_tensors
        g_vocab = grad[:, :vocab.shape[1]]
        g_copy = grad.gather(1, src)
        g_p = (g_vocab * vocab).sum(1, keepdim=True) - (g_copy * attn).sum(1, keepdim=True)
        return g_p, p_gen * g_vocab, (1 - p_gen) * g_copy, None, None
