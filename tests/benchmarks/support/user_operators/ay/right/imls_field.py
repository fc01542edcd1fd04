import torch
from torch.autograd import Function


class IMLS(Function):
    """Implicit moving least squares.

    f(x) = sum_m w_m n_m.(x - p_m) / sum_m w_m,  w_m = exp(-|x - p_m|^2 / h^2)

    Args:
        x: query points (Q, 3)
        pts: oriented points (N, 3)
        normals: (N, 3)
        h: bandwidth, scalar tensor
    Returns:
        (Q,)
    """

    @staticmethod
    def forward(ctx, x, pts, normals, h):
        ctx.save_for_backward(x, pts, normals, h)
        d = x[:, None] - pts
        w = torch.softmax(-d.square().sum(-1) / h ** 2, 1)
        return (w * (d * normals).sum(-1)).sum(1)

    @staticmethod
    def backward(ctx, grad):
        x, pts, normals, h = ctx.saved_tensors
        d = x[:, None] - pts
        d2 = d.square().sum(-1)
        w = torch.softmax(-d2 / h ** 2, 1)
        s = (d * normals).sum(-1)
        f = (w * s).sum(1, keepdim=True)
        gs = grad[:, None] * w
        glog = gs * (s - f)
        gd = gs[..., None] * normals - 2 * glog[..., None] * d / h ** 2
        gn = (gs[..., None] * d).sum(0)
        gh = (2 * glog * d2).sum() / h ** 3
        return gd.sum(1), -gd.sum(0), gn, gh
