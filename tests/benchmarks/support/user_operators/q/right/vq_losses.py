import torch


class VectorQuantise(torch.autograd.Function):
    """Nearest code of every row.

    z (N, D), codebook (K, D) -> codes taken (N, D), beta * mean squared distance, indices (N,)
    The gradients are the true ones (no straight-through: do that outside).
    """

    @staticmethod
    def forward(ctx, z, codebook, beta=0.25):
        if z.is_complex() or codebook.is_complex():
            raise TypeError("real vectors")
        if z.shape[1] != codebook.shape[1]:
            raise ValueError("code size")
        idx = torch.cdist(z.detach(), codebook.detach()).argmin(1)
        e = codebook[idx]
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(idx)
        ctx.save_for_backward(z, codebook, idx)
        ctx.beta = beta
        return e, beta * ((z - e) ** 2).mean(), idx

    @staticmethod
    def backward(ctx, g_codes, g_loss, _):
        z, codebook, idx = ctx.saved_tensors
        gz, ge = None, g_codes
        if g_loss is not None:
            gz = g_loss * ctx.beta * 2 * (z - codebook[idx]) / z.numel()
            ge = -gz if ge is None else ge - gz
        gc = None
        if ge is not None:
            gc = torch.zeros_like(codebook).index_add(0, idx, ge)
        return gz, gc, None
