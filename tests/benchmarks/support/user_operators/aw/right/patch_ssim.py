import torch


class PatchSSIM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, c1=0.01 ** 2, c2=0.03 ** 2):
        ctx.save_for_backward(x, y)
        ctx.c = (c1, c2)
        mx, my = x.mean(-1), y.mean(-1)
        xc, yc = x - mx[..., None], y - my[..., None]
        num = (2 * mx * my + c1) * (2 * (xc * yc).mean(-1) + c2)
        den = (mx ** 2 + my ** 2 + c1) * ((xc ** 2).mean(-1) + (yc ** 2).mean(-1) + c2)
        return num / den

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        c1, c2 = ctx.c
        n = x.shape[-1]
        mx, my = x.mean(-1, keepdim=True), y.mean(-1, keepdim=True)
        xc, yc = x - mx, y - my
        a = 2 * mx * my + c1
        b = 2 * (xc * yc).mean(-1, keepdim=True) + c2
        c = mx ** 2 + my ** 2 + c1
        d = (xc ** 2).mean(-1, keepdim=True) + (yc ** 2).mean(-1, keepdim=True) + c2
        s = a * b / (c * d)
        g = g.unsqueeze(-1) * 2 / n
        gx = gy = None
        if ctx.needs_input_grad[0]:
            gx = g * (b * my / (c * d) - s * mx / c + a * yc / (c * d) - s * xc / d)
        if ctx.needs_input_grad[1]:
            gy = g * (b * mx / (c * d) - s * my / c + a * xc / (c * d) - s * yc / d)
        return gx, gy, None, None
