import torch


class SoftVoronoi(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, sites, w, tau):
        ctx.save_for_backward(x, sites, w)
        ctx.tau = tau
        power = (x[:, None] - sites).square().sum(-1) - w
        return torch.softmax(-power / tau, -1)

    @staticmethod
    def backward(ctx, g):
        x, sites, w = ctx.saved_tensors
        d = x[:, None] - sites
        p = torch.softmax(-(d.square().sum(-1) - w) / ctx.tau, -1)
        gl = p * (g - (p * g).sum(-1, keepdim=True))
        gd = -2 * gl[..., None] * d
        return gd.sum(1), -gd.sum(0), gl.sum(0), None


def power_cells(x, sites, w, tau=1.0):
    """Soft assignment of points to the cells of a power diagram.

    Args:
        x: (N, D) points
        sites: (M, D)
        w: (M,) power weights, zero for a Voronoi diagram
        tau: softness
    Returns:
        (N, M), rows sum to one
    """
    return SoftVoronoi.apply(x, sites, w, tau)
