import torch
from torch.autograd import Function


def coboundary(x, Fu, Fv, edge_index):
    u, v = edge_index
    return torch.einsum("ekd,ed->ek", Fv, x[v]) - torch.einsum("ekd,ed->ek", Fu, x[u])


def adjoint(y, Fu, Fv, edge_index, n):
    u, v = edge_index
    out = y.new_zeros(n, Fu.shape[2]).index_add(0, v, torch.einsum("ekd,ek->ed", Fv, y))
    return out.index_add(0, u, -torch.einsum("ekd,ek->ed", Fu, y))


class SheafLaplacian(Function):
    """Cellular sheaf Laplacian applied to a 0-cochain.

    x: (N, d) node stalks; Fu, Fv: (E, k, d) restriction maps; edge_index: (2, E)
    """

    @staticmethod
    def forward(ctx, x, Fu, Fv, edge_index):
        ctx.save_for_backward(x, Fu, Fv, edge_index)
        return adjoint(coboundary(x, Fu, Fv, edge_index), Fu, Fv, edge_index, len(x))

    @staticmethod
    def backward(ctx, g):
        x, Fu, Fv, edge_index = ctx.saved_tensors
        u, v = edge_index
        y = coboundary(x, Fu, Fv, edge_index)
        z = coboundary(g, Fu, Fv, edge_index)
        gx = adjoint(z, Fu, Fv, edge_index, len(x))
        gFv = torch.einsum("ek,ed->ekd", y, g[v]) + torch.einsum("ek,ed->ekd", z, x[v])
        gFu = -torch.einsum("ek,ed->ekd", y, g[u]) - torch.einsum("ek,ed->ekd", z, x[u])
        return gx, gFu, gFv, None
