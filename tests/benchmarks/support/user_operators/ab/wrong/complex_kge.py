import torch


class ComplExScore(torch.autograd.Function):
    """Re <head, relation, conj(tail)> of complex embeddings (batch, d); the batch broadcasts."""

    @staticmethod
    def forward(ctx, head, rel, tail):
        ctx.save_for_backward(head, rel, tail)
        return (head * rel * tail.conj()).sum(-1).real

    @staticmethod
    def backward(ctx, g):
        head, rel, tail = ctx.saved_tensors
        g = g.unsqueeze(-1)
        g_head = g * (rel.conj() * tail)
        g_rel = g * (head.conj() * tail)
        g_tail = g * (head * rel).conj()
        return g_head.sum_to_size(head.shape), g_rel.sum_to_size(rel.shape), g_tail.sum_to_size(tail.shape)
