import torch


def jones(delta, theta):
    c, s = torch.cos(delta / 2), torch.sin(delta / 2)
    a, b = torch.cos(2 * theta), torch.sin(2 * theta)
    J = torch.stack([torch.complex(c, -s * a), torch.complex(torch.zeros_like(c), -s * b),
                     torch.complex(torch.zeros_like(c), -s * b), torch.complex(c, s * a)], -1)
    return J.unflatten(-1, (2, 2))


class Retarder(torch.autograd.Function):
    """Linear retarder. E: (..., 2) complex, delta and theta: (...) real."""

    @staticmethod
    def forward(ctx, E, delta, theta):
        ctx.save_for_backward(E, delta, theta)
        return torch.einsum("...ij,...j->...i", jones(delta, theta), E)

    @staticmethod
    def backward(ctx, g):
        E, delta, theta = ctx.saved_tensors
        J = jones(delta, theta)
        gE = torch.einsum("...ij,...i->...j", J.conj(), g)
        # d/d delta = half the matrix advanced by pi
        dd = torch.einsum("...ij,...j->...i", jones(delta + torch.pi, theta), E) / 2
        s = torch.sin(delta / 2)
        a, b = torch.cos(2 * theta), torch.sin(2 * theta)
        x, y = E.unbind(-1)
        dt = 2j * s.unsqueeze(-1) * torch.stack([b * x - a * y, -a * x - b * y], -1)
        return gE, (g.conj() * dd).real.sum(-1), (g.conj() * dt).real.sum(-1)
