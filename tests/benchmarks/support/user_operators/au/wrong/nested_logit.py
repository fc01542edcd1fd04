import torch


class NestedLogit(torch.autograd.Function):
    """Log choice probabilities of a two-level nested logit.

    V (B, J) utilities, nest (J,) long with every nest 0..K-1 occupied, lam (K,) dissimilarities in (0, 1].
    """

    @staticmethod
    def _inclusive(V, nest, lam):
        member = nest[:, None] == torch.arange(lam.numel(), device=nest.device)
        a = (V / lam[nest])[:, :, None].masked_fill(~member, float("-inf"))
        return member.to(V.dtype), torch.logsumexp(a, 1)

    @staticmethod
    def forward(ctx, V, nest, lam):
        ctx.save_for_backward(V, nest, lam)
        _, I = NestedLogit._inclusive(V, nest, lam)
        up = torch.log_softmax(lam * I, 1)
        return V / lam[nest] - I[:, nest] + up[:, nest]

    @staticmethod
    def backward(ctx, g):
        V, nest, lam = ctx.saved_tensors
        member, I = NestedLogit._inclusive(V, nest, lam)
        W = torch.softmax(lam * I, 1)
        q = torch.exp(V / lam[nest] - I[:, nest])
        G = g @ member
        up = G - W
        dI = lam * up - G
        dA = g + dI[:, nest] * q
        d_lam = (up * I).sum(0) - ((dA * V).sum(0) @ member) / lam**2
        return dA / lam[nest], None, d_lam
