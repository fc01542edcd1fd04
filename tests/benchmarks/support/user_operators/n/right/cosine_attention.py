import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class CosineAttention(torch.autograd.Function):
    """Swin-v2 style attention: softmax(tau * cos(q, k) + mask) v.

    q, k: (B, H, L, D) / (B, H, S, D);  v: (B, H, S, E);  tau: (H, 1, 1)
    mask: (B, S) bool, True where a key may be attended (optional)
    """

    @staticmethod
    def forward(ctx, q, k, v, tau, mask=None, eps: float = 1e-6):
        qn = q.norm(dim=-1, keepdim=True).clamp(min=eps)
        kn = k.norm(dim=-1, keepdim=True).clamp(min=eps)
        qh, kh = q / qn, k / kn
        cos = qh @ kh.transpose(-2, -1)
        score = cos * tau
        if mask is not None:
            score = score.masked_fill(~mask[:, None, None, :], float("-inf"))
        att = F.softmax(score, dim=-1)
        ctx.save_for_backward(qh, kh, qn, kn, v, tau, cos, att)
        ctx.eps = eps
        return att @ v

    @staticmethod
    @once_differentiable
    def backward(ctx, go):
        qh, kh, qn, kn, v, tau, cos, att = ctx.saved_tensors
        gv = att.transpose(-2, -1) @ go
        gatt = go @ v.transpose(-2, -1)
        gs = att * (gatt - (gatt * att).sum(-1, keepdim=True))
        gtau = (gs * cos).sum_to_size(tau.shape)
        gcos = gs * tau
        gqh = gcos @ kh
        gkh = gcos.transpose(-2, -1) @ qh
        gq = (gqh - qh * (qn > ctx.eps) * (gqh * qh).sum(-1, keepdim=True)) / qn
        gk = (gkh - kh * (kn > ctx.eps) * (gkh * kh).sum(-1, keepdim=True)) / kn
        return gq, gk, gv, gtau, None, None
