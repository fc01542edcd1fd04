import torch
from torch import Tensor


class DecomposedRelPos(torch.autograd.Function):
    """Adds MViT / SAM decomposed relative positions to attention logits.

    attn (..., Qh*Qw, Kh*Kw), q (..., Qh*Qw, C), rel_h (Qh, Kh, C), rel_w (Qw, Kw, C)
    """

    @staticmethod
    def forward(ctx, attn: Tensor, q: Tensor, rel_h: Tensor, rel_w: Tensor) -> Tensor:
        ctx.save_for_backward(q, rel_h, rel_w)
        (qh, kh, c), (qw, kw, _) = rel_h.shape, rel_w.shape
        r_q = q.reshape(-1, qh, qw, c)
        h = torch.einsum("byxc,ykc->byxk", r_q, rel_h)
        w = torch.einsum("byxc,xkc->byxk", r_q, rel_w)
        out = attn.reshape(-1, qh, qw, kh, kw) + h[..., :, None] + w[..., None, :]
        return out.reshape(attn.shape)

    @staticmethod
    def backward(ctx, g: Tensor):
        q, rel_h, rel_w = ctx.saved_tensors
        (qh, kh, c), (qw, kw, _) = rel_h.shape, rel_w.shape
        r_q = q.reshape(-1, qh, qw, c)
        g5 = g.reshape(-1, qh, qw, kh, kw)
        gh, gw = g5.sum(-1), g5.sum(-2)
        dq = torch.einsum("byxk,ykc->byxc", gh, rel_h) + torch.einsum("byxk,xkc->byxc", gw, rel_w)
        d_rel_h = torch.einsum("byxk,byxc->ykc", gh, r_q)
        d_rel_w = torch.einsum("byxk,byxc->xkc", gw, r_q)
        return g, dq.reshape(q.shape), d_rel_h, d_rel_w
