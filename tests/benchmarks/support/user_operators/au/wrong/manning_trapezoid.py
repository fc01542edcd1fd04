import torch
from torch.autograd import Function


class _Manning(Function):
    @staticmethod
    def forward(ctx, depth, width, side, n, slope):
        ctx.save_for_backward(depth, width, side, n, slope)
        area = (width + side * depth) * depth
        wet = width + 2 * depth * torch.sqrt(1 + side**2)
        return area ** (5 / 3) * wet ** (-2 / 3) * torch.sqrt(slope) / n

    @staticmethod
    def backward(ctx, g):
        depth, width, side, n, slope = ctx.saved_tensors
        area = (width + side * depth) * depth
        root = torch.sqrt(1 + side**2)
        wet = width + 2 * depth * root
        q = area ** (5 / 3) * wet ** (-2 / 3) * torch.sqrt(slope) / n
        gq = g.mul_(q)
        ga, gp = 5 / 3 * gq / area, -2 / 3 * gq / wet
        g_depth = ga * (width + 2 * side * depth) + gp * 2 * root
        g_width = ga * depth + gp
        g_side = ga * depth**2 + gp * 2 * depth * side / root
        return (g_depth.sum_to_size(depth.shape), g_width.sum_to_size(width.shape), g_side.sum_to_size(side.shape),
                (-gq / n).sum_to_size(n.shape), (gq / (2 * slope)).sum_to_size(slope.shape))


def manning_trapezoid(depth, width, side, n, slope):
    """Uniform flow [m3/s] in a trapezoidal channel: depth, bottom width [m], side slope (H:V), Manning n, bed slope."""
    return _Manning.apply(depth, width, side, n, slope)
