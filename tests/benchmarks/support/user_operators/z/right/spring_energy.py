import torch


class _SpringEnergy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, edges, rest, k):
        d = x[edges[:, 0]] - x[edges[:, 1]]
        stretch = d.norm(dim=-1) - rest
        ctx.save_for_backward(x, edges, rest, k)
        return 0.5 * (k * stretch * stretch).sum()

    @staticmethod
    def backward(ctx, g):
        x, edges, rest, k = ctx.saved_tensors
        i, j = edges.unbind(1)
        d = x[i] - x[j]
        length = d.norm(dim=-1)
        stretch = length - rest
        f = (g * k * stretch / length).unsqueeze(-1) * d
        gx = torch.zeros_like(x).index_add(0, i, f).index_add(0, j, -f)
        gk = 0.5 * g * stretch * stretch
        return gx, None, -g * k * stretch, gk


def spring_energy(x, edges, rest, k, gravity=0.0):
    """Energy of a mass-spring net: unit masses x (N, D), edges (E, 2), rest lengths and
    stiffnesses (E,). Height is the last coordinate."""
    energy = _SpringEnergy.apply(x, edges, rest, k)
    if gravity:
        energy = energy + gravity * x[:, -1].sum()
    return energy
