import torch


class _Composite(torch.autograd.Function):
    @staticmethod
    def forward(ctx, alpha, rgb, background):
        trans = torch.cumprod(1 - alpha, dim=1)
        before = torch.cat([torch.ones_like(trans[:, :1]), trans[:, :-1]], dim=1)
        w = before * alpha
        out = (w.unsqueeze(-1) * rgb).sum(1) + trans[:, -1:] * background
        ctx.save_for_backward(alpha, rgb, background, before, w)
        return out, w.sum(1)

    @staticmethod
    def backward(ctx, g_rgb, g_acc):
        alpha, rgb, background, before, w = ctx.saved_tensors
        end = before[:, -1] * (1 - alpha[:, -1])
        tail = end * (background * g_rgb).sum(-1)   # light that arrives from behind
        acc = torch.zeros_like(g_acc)               # opacity from behind
        g_alpha = torch.empty_like(alpha)
        for k in range(alpha.shape[1] - 1, -1, -1):
            own = (rgb[:, k] * g_rgb).sum(-1) + g_acc
            g_alpha[:, k] = before[:, k] * own - (tail + acc * g_acc) / (1 - alpha[:, k])
            tail = tail + w[:, k] * (rgb[:, k] * g_rgb).sum(-1)
            acc = acc + w[:, k]
        g_col = w.unsqueeze(-1) * g_rgb.unsqueeze(1)
        g_bg = ((before[:, -1] * (1 - alpha[:, -1])).unsqueeze(-1) * g_rgb).sum(0)
        return g_alpha, g_col, g_bg


def composite(alpha, rgb, background=None):
    """Front-to-back compositing. alpha [rays, samples], rgb [rays, samples, 3], background [3].

    Returns colour [rays, 3] and accumulated opacity [rays].
    """
    if background is None:
        background = rgb.new_zeros(rgb.shape[-1])
    return _Composite.apply(alpha, rgb, background)
