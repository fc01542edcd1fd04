import torch


class TriplanarBlend(torch.autograd.Function):

    @staticmethod
    def forward(ctx, colors, normals, sharpness=4.0):
        ctx.save_for_backward(colors, normals)
        ctx.k = sharpness
        w = normals.abs() ** sharpness
        w = w / w.sum(-1, keepdim=True)
        return (w.unsqueeze(-1) * colors).sum(-2)

    @staticmethod
    def backward(ctx, grad):
        colors, normals = ctx.saved_tensors
        k = ctx.k
        p = normals.abs() ** k
        total = p.sum(-1, keepdim=True)
        w = p / total
        g = grad.unsqueeze(-2)
        gw = (g * colors).sum(-1)
        gp = (gw - (gw * w).sum(-1, keepdim=True)) / total
        gn = gp * k * normals.abs() ** (k - 1)
        return w.unsqueeze(-1) * g, gn, None
