import torch


class VectorQuantizeSTE(torch.autograd.Function):
    """Nearest code of every row of z (N, D) in codebook (K, D) -> (codes (N, D), indices (N,)).

    z gets the gradient straight through, the codebook its own.
    """

    @staticmethod
    def forward(ctx, z, codebook):
        idx = torch.cdist(z, codebook).argmin(1)
        ctx.mark_non_differentiable(idx)
        ctx.save_for_backward(idx.to(torch.int32))
        ctx.codebook_shape = codebook.shape
        return codebook[idx], idx

    @staticmethod
    def backward(ctx, grad, _):
        idx, = ctx.saved_tensors
        gc = grad.new_zeros(ctx.codebook_shape).index_add(0, idx.long(), grad)
        return grad.clone(), gc
