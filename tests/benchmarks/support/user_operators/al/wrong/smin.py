import torch


class SMin(torch.autograd.Function):
    @staticmethod
    def forward(ctx, k, *ds):
        ctx.k = k
        ctx.save_for_backward(*ds)
        m = ds[0]
        for d in ds[1:]:
            h = (k - (m - d).abs()).clamp(min=0) / k
            m = torch.minimum(m, d) - h * h * k / 4
        return m.clone()

    @staticmethod
    def backward(ctx, g):
        ds, k = ctx.saved_tensors, ctx.k
        m, ws = ds[0], []
        for d in ds[1:]:
            h = (k - (m - d).abs()).clamp(min=0) / k
            ws.append(torch.where(m < d, 1 - h / 2, h / 2))
            m = torch.minimum(m, d) - h * h * k / 4
        out = []
        for w in ws[::-1]:
            out.append(g * (1 - w))
            g = g * w
        out.append(g)
        return (None, *out)
