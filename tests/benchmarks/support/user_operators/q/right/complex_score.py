import torch


class ComplExScore(torch.autograd.Function):
    """Re <h, r, conj(t)> of entity and relation embeddings, both complex, picked by triples (T, 3)."""

    @staticmethod
    def forward(ctx, ent, rel, triples):
        if ent.dtype != rel.dtype:
            raise TypeError("entities and relations must be of one dtype")
        ctx.save_for_backward(ent, rel, triples)
        h, r, t = ent[triples[:, 0]], rel[triples[:, 1]], ent[triples[:, 2]]
        return (h * r * t.conj()).sum(-1).real

    @staticmethod
    def backward(ctx, g):
        ent, rel, triples = ctx.saved_tensors
        ih, ir, it = triples.unbind(1)
        h, r, t = ent[ih], rel[ir], ent[it]
        g = g[:, None]
        g_ent = torch.zeros_like(ent).index_add(0, ih, g * r.conj() * t).index_add(0, it, g * h * r)
        g_rel = torch.zeros_like(rel).index_add(0, ir, g * h.conj() * t)
        return g_ent, g_rel, None
