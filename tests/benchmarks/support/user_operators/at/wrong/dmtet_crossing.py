import torch


class EdgeCrossing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pos, sdf, edges):
        """
        pos [V, 3], sdf [V], edges [E, 2] whose ends have sdf of opposite sign -> [E, 3]
        """
        ctx.save_for_backward(pos, sdf, edges)
        a, b = edges.unbind(1)
        sa, sb = sdf[a].unsqueeze(-1), sdf[b].unsqueeze(-1)
        return (pos[a] * sb - pos[b] * sa) / (sb - sa)

    @staticmethod
    def backward(ctx, dverts):
        pos, sdf, edges = ctx.saved_tensors
        a, b = edges.unbind(1)
        sa, sb = sdf[a].unsqueeze(-1), sdf[b].unsqueeze(-1)
        den = sb - sa
        dpos = torch.zeros_like(pos)
        dpos = dpos.index_add(0, a, dverts * sb / den).index_add(0, b, -dverts * sa / den)
        along = ((pos[a] - pos[b]) * dverts).sum(-1) / den.squeeze(-1) ** 2
        dsdf = torch.zeros_like(sdf)
        dsdf = dsdf.index_add(0, a, along * sdf[b]).index_add(0, b, -along * sdf[a])
        return dpos, None, None


def marching_vertices(pos, sdf, edges):
    return EdgeCrossing.apply(pos, sdf, edges)
