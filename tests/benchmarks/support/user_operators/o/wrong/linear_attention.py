import torch
import torch.nn.functional as F


def _phi(x):
    return F.elu(x) + 1


def _dphi(x):
    return torch.where(x > 0, torch.ones_like(x), x.clamp(max=0).exp())


class LinearAttention(torch.autograd.Function):
    """Kernelised attention (elu + 1 features), not causal.

    Shapes: query (B, T, D), key (B, S, D), value (B, S, M), key_mask (B, S) bool with True = keep.
    """

    @staticmethod
    def forward(ctx, query, key, value, key_mask=None, eps=1e-6):
        ctx.save_for_backward(query, key, value, key_mask)
        ctx.eps = eps
        pq, pk = _phi(query), _phi(key)
        if key_mask is not None:
            pk = pk * key_mask.unsqueeze(-1)
        num = pq @ (pk.transpose(1, 2) @ value)
        den = (pq * pk.sum(1, keepdim=True)).sum(-1, keepdim=True) + eps
        return num / den

    @staticmethod
    def backward(ctx, grad):
        query, key, value, key_mask = ctx.saved_tensors
        keep = None if key_mask is None else key_mask.unsqueeze(-1)
        pq, pk = _phi(query), _phi(key)
        if keep is not None:
            pk = pk * keep
        kv = pk.transpose(1, 2) @ value
        z = pk.sum(1, keepdim=True)
        num = pq @ kv
        den = (pq * z).sum(-1, keepdim=True) + ctx.eps
        g_num = grad / den
        g_den = -(grad * num).sum(-1, keepdim=True) / den.pow(2)
        g_pq = g_num @ kv.transpose(1, 2) + g_den * z
        g_kv = pq.transpose(1, 2) @ g_num
        g_z = (pq * g_den).sum(1, keepdim=True)
        g_value = pk @ g_kv
        g_pk = value @ g_kv.transpose(1, 2) + g_z
        return g_pq * _dphi(query), g_pk * _dphi(key), g_value, None, None
