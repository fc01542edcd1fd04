import torch
from torch.autograd import Function

_DENOM_EPS = 1e-8


def _nearest_param(p, a, b):
    ab = b - a
    l2 = (ab * ab).sum(-1)
    proper = l2 > _DENOM_EPS
    t = ((p - a) * ab).sum(-1) / torch.where(proper, l2, torch.ones_like(l2))
    return torch.where(proper, t.clamp(0.0, 1.0), torch.ones_like(t))


class PointEdgeDistance(Function):
    @staticmethod
    def forward(ctx, points, segms):
        """
        Squared distance of every point to its nearest segment.

        Args:
            points: FloatTensor of shape `(P, 3)`
            segms: FloatTensor of shape `(S, 2, 3)`
        Returns:
            dists: FloatTensor of shape `(P,)`
            idxs: LongTensor of shape `(P,)` containing the index of the closest segment.
        """
        p = points.unsqueeze(1)
        a, b = segms[:, 0].unsqueeze(0), segms[:, 1].unsqueeze(0)
        t = _nearest_param(p, a, b).unsqueeze(-1)
        dists, idxs = ((p - (a + t * (b - a))) ** 2).sum(-1).min(1)
        ctx.save_for_backward(points, segms, idxs)
        ctx.mark_non_differentiable(idxs)
        return dists, idxs

    @staticmethod
    def backward(ctx, grad_dists, grad_idxs):
        grad_idxs = None
        points, segms, idxs = ctx.saved_tensors
        a, b = segms[idxs].unbind(1)
        t = _nearest_param(points, a, b).unsqueeze(-1)
        g = 2 * grad_dists.unsqueeze(-1) * (points - a - t * (b - a))
        ends = torch.stack([-t * g, (t - 1) * g], 1)
        return g, torch.zeros_like(segms).index_add(0, idxs, ends)
