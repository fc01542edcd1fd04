import torch


class EffectiveResistance(torch.autograd.Function):
    """Resistance between node pairs of a connected weighted graph.

    w: (E,) conductances, edges: (2, E), pairs: (2, P), n: number of nodes
    """

    @staticmethod
    def incidence(edges, n, like):
        cols = torch.arange(edges.shape[1], device=edges.device)
        B = torch.zeros(n, edges.shape[1], dtype=like.dtype, device=like.device)
        return B.index_put((edges[0], cols), like.new_ones(()), True).index_put((edges[1], cols), -like.new_ones(()), True)

    @staticmethod
    def potentials(w, B, Q):
        L = (B * w) @ B.T
        return torch.linalg.solve(L + 1 / len(L), Q)

    @staticmethod
    def forward(ctx, w, edges, pairs, n):
        B = EffectiveResistance.incidence(edges, n, w)
        Q = EffectiveResistance.incidence(pairs, n, w)
        ctx.save_for_backward(w, B, Q)
        return (Q * EffectiveResistance.potentials(w, B, Q)).sum(0)

    @staticmethod
    def backward(ctx, g):
        w, B, Q = ctx.saved_tensors
        drop = B.T @ EffectiveResistance.potentials(w, B, Q)
        return -(drop ** 2) @ g, None, None, None
