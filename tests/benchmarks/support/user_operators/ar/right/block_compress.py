import torch


def _windows(k, block, stride):
    b, t, d = k.shape
    n = (t - block) // stride + 1
    return k.as_strided((b, n, block, d), (t * d, stride * d, d, 1), k.storage_offset())


class _Compress(torch.autograd.Function):
    @staticmethod
    def forward(ctx, k, weight, stride):
        ctx.save_for_backward(k, weight)
        ctx.stride = stride
        return torch.einsum("bnld,l->bnd", _windows(k.contiguous(), weight.numel(), stride), weight)

    @staticmethod
    def backward(ctx, grad):
        k, weight = ctx.saved_tensors
        block, stride, n = weight.numel(), ctx.stride, grad.size(1)
        windows = _windows(k.contiguous(), block, stride)
        d_weight = torch.einsum("bnd,bnld->l", grad, windows)
        d_k = torch.zeros_like(k)
        pos = torch.arange(n, device=k.device) * stride
        for l in range(block):
            d_k = d_k.index_add(1, pos + l, grad * weight[l])
        return d_k, d_weight, None


def block_compress(k, weight, stride):
    """Compressed keys of sparse attention: weighted sums over overlapping blocks.

    k (B, T, D), weight (block,), T >= block -> (B, (T - block) // stride + 1, D)
    """
    return _Compress.apply(k, weight, stride)
