"""Mass-spring forces."""
import torch
from torch.autograd import Function


def _geometry(pos, edges):
    d = pos[edges[:, 1]] - pos[edges[:, 0]]
    length = d.norm(dim=1, keepdim=True)
    return d / length, length


class SpringForces(Function):
    """Forces on N particles joined by E springs.

    pos (N, D), edges (E, 2) long, rest (E,) rest lengths, stiffness (E,)
    returns (N, D); the ends of a spring must not coincide
    """

    @staticmethod
    def forward(ctx, pos, edges, rest, stiffness):
        ctx.save_for_backward(pos, edges, rest, stiffness)
        u, length = _geometry(pos, edges)
        f = stiffness[:, None] * (length - rest[:, None]) * u
        out = torch.zeros_like(pos)
        out.index_add_(0, edges[:, 0], f)
        out.index_add_(0, edges[:, 1], -f)
        return out

    @staticmethod
    def backward(ctx, grad):
        pos, edges, rest, stiffness = ctx.saved_tensors
        i, j = edges.unbind(1)
        u, length = _geometry(pos, edges)
        gf = grad[i] - grad[j]
        along = (gf * u).sum(1, keepdim=True)
        ratio = rest[:, None] / length
        gd = stiffness[:, None] * ((1 - ratio) * gf + ratio * along * u)
        g_pos = torch.zeros_like(pos)
        g_pos[j] += gd
        g_pos[i] -= gd
        g_rest = -stiffness * along.squeeze(1)
        g_stiff = (length.squeeze(1) - rest) * along.squeeze(1)
        return g_pos, None, g_rest, g_stiff


def simulate(pos, vel, edges, rest, stiffness, dt=1e-2, steps=10, damping=0.1):
    for _ in range(steps):
        vel = vel + dt * (SpringForces.apply(pos, edges, rest, stiffness) - damping * vel)
        pos = pos + dt * vel
    return pos, vel
