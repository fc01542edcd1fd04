import torch


class VectorQuantizeST(torch.autograd.Function):
    # Straight-through by design: dL/dx = dL/dq as if the nearest-neighbour lookup were the
    # identity, the code vectors only learn from the loss. Stop-gradients as in VQ-VAE:
    #   loss = |sg(x) - e|^2 + beta |x - sg(e)|^2      (mean over all elements)

    @staticmethod
    def forward(ctx, x, codebook, beta):
        idx = torch.cdist(x, codebook).argmin(dim=1)
        q = codebook[idx]
        loss = (1 + beta) * (q - x).pow(2).mean()
        ctx.save_for_backward(x, codebook, idx)
        ctx.beta = beta
        ctx.mark_non_differentiable(idx)
        return q, loss, idx

    @staticmethod
    def backward(ctx, g_q, g_loss, _):
        x, codebook, idx = ctx.saved_tensors
        r = 2.0 * (x - codebook[idx]) / x.numel() * g_loss
        g_x = g_q + ctx.beta * r
        g_codebook = torch.zeros_like(codebook)
        g_codebook[idx] -= r
        return g_x, g_codebook, None
