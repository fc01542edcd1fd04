import torch


class InverseDistanceInterp(torch.autograd.Function):
    """Feature propagation of PointNet++ with gradients to all geometry.

    Inputs
      query   (B, N, 3)
      known   (B, M, 3)
      feats   (B, M, C)
      k       neighbours, at most M
      eps     added to squared distances
    Output
      (B, N, C)
    """

    @staticmethod
    def forward(ctx, query, known, feats, k=3, eps=1e-6):
        idx = torch.cdist(query.detach(), known.detach()).topk(k, largest=False).indices
        ctx.save_for_backward(query, known, feats, idx)
        ctx.eps = eps
        _, w, f = _weights(query, known, feats, idx, eps)
        return (w.unsqueeze(-1) * f).sum(2)

    @staticmethod
    def backward(ctx, grad):
        query, known, feats, idx = ctx.saved_tensors
        inv, w, f = _weights(query, known, feats, idx, ctx.eps)
        flat = idx.flatten(1).unsqueeze(-1)
        g_feats = (grad.unsqueeze(2) * w.unsqueeze(-1)).flatten(1, 2)
        g_feats = torch.zeros_like(feats).scatter_add(1, flat.expand_as(g_feats), g_feats)
        gw = (grad.unsqueeze(2) * f).sum(-1)
        g_inv = (gw - (gw * w).sum(2, keepdim=True)) / inv.sum(2, keepdim=True)
        g_d2 = -g_inv * inv * inv
        g_diff = 2 * g_d2.unsqueeze(-1) * (query.unsqueeze(2) - _rows(known, idx))
        g_query = g_diff.sum(2)
        g_diff = g_diff.flatten(1, 2)
        g_known = torch.zeros_like(known).scatter_add(1, flat.expand_as(g_diff), g_diff)
        return g_query, g_known, g_feats, None, None


def _rows(x, idx):
    flat = idx.flatten(1).unsqueeze(-1).expand(-1, -1, x.size(-1))
    return x.gather(1, flat).unflatten(1, idx.shape[1:])


def _weights(query, known, feats, idx, eps):
    d2 = (query.unsqueeze(2) - _rows(known, idx)).square().sum(-1)
    inv = 1 / (d2 + eps)
    return inv, inv / inv.sum(2, keepdim=True), _rows(feats, idx)
