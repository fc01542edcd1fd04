import torch
import torch.nn.functional as F

_TAPS = {2: (1, 1), 3: (1, 2, 1), 4: (1, 3, 3, 1), 5: (1, 4, 6, 4, 1)}


def _kernel(taps, like):
    k = torch.tensor(_TAPS[taps], dtype=like.dtype, device=like.device)
    return k / k.sum()


class _BlurPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, taps, stride):
        left, right = (taps - 1) // 2, taps // 2
        ctx.spec = (x.shape[-1], taps, stride, left, right)
        xp = F.pad(x, (left, right), mode="reflect")
        return xp.unfold(-1, taps, stride) @ _kernel(taps, x)

    @staticmethod
    def backward(ctx, g):
        n, taps, stride, left, right = ctx.spec
        k = _kernel(taps, g)
        gp = g.new_zeros(*g.shape[:-1], n + left + right)
        at = torch.arange(g.shape[-1], device=g.device) * stride
        for i in range(taps):
            gp = gp.index_add(-1, at + i, g * k[i])
        gx = gp[..., left:left + n]
        # fold the reflected borders back
        if left:
            gx = gx + F.pad(gp[..., :left], (1, n - 1 - left))
        if right:
            gx = gx + F.pad(gp[..., left + n:].flip(-1), (n - 1 - right, 1))
        return gx, None, None


def blur_downsample(x, taps=3, stride=2):
    """Anti-aliased striding of (B, C, T) with a binomial filter and reflected borders (T >= taps)."""
    return _BlurPool.apply(x, taps, stride)
