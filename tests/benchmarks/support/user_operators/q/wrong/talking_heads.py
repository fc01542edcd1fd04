import torch


class TalkingHeadsMix(torch.autograd.Function):
    """Mix attention scores over heads.  scores (B, H, Q, K), proj (H, H') -> (B, H', Q, K)."""

    @staticmethod
    def forward(ctx, scores, proj, mask=None, fill=-50.0):
        assert not scores.is_complex() and not proj.is_complex()
        assert scores.shape[1] == proj.shape[0]
        ctx.save_for_backward(scores, proj, mask)
        out = torch.einsum("bhqk,hg->bgqk", scores, proj)
        if mask is not None:
            out = out.masked_fill(mask, fill)
        return out

    @staticmethod
    def backward(ctx, grad):
        scores, proj, mask = ctx.saved_tensors
        if mask is not None:
            grad = grad.masked_fill(~mask, 0.0)
        gs = torch.einsum("bgqk,hg->bhqk", grad, proj)
        gp = torch.einsum("bhqk,bgqk->hg", scores, grad)
        return gs, gp, None, None
