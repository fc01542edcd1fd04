import torch


class DiffusionRegularizer(torch.autograd.Function):
    """Mean squared forward differences of a displacement field.

    field: (B, C, H, W); spacing: voxel size (sy, sx) in mm; penalty "l2" or "l1"
    """

    @staticmethod
    def forward(ctx, field, spacing=(1.0, 1.0), penalty="l2"):
        if penalty not in ("l1", "l2"):
            raise ValueError(penalty)
        sy, sx = spacing
        dy = (field[:, :, 1:] - field[:, :, :-1]) / sy
        dx = (field[..., 1:] - field[..., :-1]) / sx
        ctx.save_for_backward(field)
        ctx.spacing, ctx.penalty = (sy, sx), penalty
        if penalty == "l1":
            return dy.abs().mean() + dx.abs().mean()
        return dy.pow(2).mean() + dx.pow(2).mean()

    @staticmethod
    def backward(ctx, grad):
        field, = ctx.saved_tensors
        out = torch.zeros_like(field)
        for dim, s in zip((2, 3), ctx.spacing):
            n = field.size(dim) - 1
            d = (field.narrow(dim, 1, n) - field.narrow(dim, 0, n)) / s
            g = (d.sign() if ctx.penalty == "l1" else 2 * d) * grad / d.numel()
            edge = torch.zeros_like(field.narrow(dim, 0, 1))
            out = out + torch.cat((edge, g), dim) - torch.cat((g, edge), dim)
        return out, None, None
