import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class SpringEnergy(Function):
    """Energies (E,) of undamped springs: 1/2 k (|x_i - x_j| - rest)^2

    pos (N, D), edges (E, 2) int64, rest (E,), stiffness (E,)
    slack: springs act like ropes, without energy when shorter than rest
    """

    @staticmethod
    def forward(ctx, pos, edges, rest, stiffness, slack=False):
        i, j = edges.unbind(1)
        d = pos[i] - pos[j]
        length = d.norm(dim=1)
        stretch = length - rest
        if slack:
            stretch = stretch.clamp(min=0)
        ctx.save_for_backward(edges, d, length, stretch, stiffness)
        ctx.num_nodes = pos.shape[0]
        return 0.5 * stiffness * stretch ** 2

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        edges, d, length, stretch, stiffness = ctx.saved_tensors
        i, j = edges.unbind(1)
        pull = grad * stiffness * stretch
        force = pull[:, None] * d / length.clamp(min=1e-12)[:, None]
        g_pos = d.new_zeros(ctx.num_nodes, d.shape[1])
        g_pos[i] += force
        g_pos[j] -= force
        return g_pos, None, -pull, 0.5 * grad * stretch ** 2, None
