import torch


class Rgb2Hsv(torch.autograd.Function):
    # (..., 3) in, h in turns, s, v out as a tuple
    @staticmethod
    def forward(ctx, rgb, eps):
        ctx.save_for_backward(rgb)
        ctx.eps = eps
        r, g, b = rgb.unbind(-1)
        v, i = rgb.max(-1)
        c = v - rgb.min(-1)[0]
        d = c + eps
        h = torch.where(i == 0, (g - b) / d, torch.where(i == 1, 2 + (b - r) / d, 4 + (r - g) / d)) / 6
        return h % 1, c / (v + eps), v

    @staticmethod
    def backward(ctx, gh, gs, gv):
        rgb, = ctx.saved_tensors
        eps = ctx.eps
        v, i = rgb.max(-1, keepdim=True)
        m, j = rgb.min(-1, keepdim=True)
        c = v - m
        d = c + eps
        # the two channels that follow the largest one around the circle
        p, q = (i + 1) % 3, (i + 2) % 3
        gh, gs, gv = gh.unsqueeze(-1) / 6, gs.unsqueeze(-1), gv.unsqueeze(-1)
        num = rgb.gather(-1, p) - rgb.gather(-1, q)
        gn = gh / d
        gc = gs / (v + eps) - gh * num / d ** 2
        gv = gv + gc - gs * c / (v + eps) ** 2
        out = torch.zeros_like(rgb)
        out = out.scatter_add(-1, i, gv).scatter_add(-1, j, -gc)
        out = out.scatter_add(-1, p, gn).scatter_add(-1, q, -gn)
        return out, None


def rgb_to_hsv(image, eps=1e-8):
    h, s, v = Rgb2Hsv.apply(image.movedim(-3, -1), eps)
    return torch.stack([h, s, v], -3)
