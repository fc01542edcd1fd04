import torch


def _terms(disp, img, gamma, dim):
    n = disp.shape[dim] - 1
    d = disp.narrow(dim, 1, n) - disp.narrow(dim, 0, n)
    i = img.narrow(dim, 1, n) - img.narrow(dim, 0, n)
    return d, i, torch.exp(-gamma * i.abs().mean(1, keepdim=True))


def _spread(g, dim, shape):
    out = g.new_zeros(shape)
    n = shape[dim] - 1
    out.narrow(dim, 1, n).add_(g)
    out.narrow(dim, 0, n).sub_(g)
    return out


class EdgeAwareSmooth(torch.autograd.Function):
    """disp (B, 1, H, W), img (B, C, H, W) -> scalar"""

    @staticmethod
    def forward(ctx, disp, img, gamma=1.0):
        ctx.save_for_backward(disp, img)
        ctx.gamma = gamma
        loss = 0
        for dim in (2, 3):
            d, _, w = _terms(disp, img, gamma, dim)
            loss = loss + (d.abs() * w).mean()
        return loss

    @staticmethod
    def backward(ctx, g):
        disp, img = ctx.saved_tensors
        gdisp, gimg = 0, 0
        for dim in (2, 3):
            d, i, w = _terms(disp, img, ctx.gamma, dim)
            gd = g * torch.sign(d) * w / d.numel()
            gi = -g * ctx.gamma * d.abs() * w * torch.sign(i) / d.numel()
            gdisp = gdisp + _spread(gd, dim, disp.shape)
            gimg = gimg + _spread(gi, dim, img.shape)
        return gdisp, gimg, None
