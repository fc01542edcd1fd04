import torch


def _edges(uv, faces):
    a, b, c = uv[faces[:, 0]], uv[faces[:, 1]], uv[faces[:, 2]]
    return torch.stack([b - a, c - a], -1)


class SymmetricDirichlet(torch.autograd.Function):
    """Sum over triangles of area * (|J|^2 + |J^-1|^2).

    uv (V, 2), faces (F, 3), rest_inv (F, 2, 2) inverse of the rest edges (columns), area (F,)
    """

    @staticmethod
    def forward(ctx, uv, faces, rest_inv, area):
        ctx.save_for_backward(uv, faces, rest_inv, area)
        J = _edges(uv, faces) @ rest_inv
        sq = J.pow(2).sum((1, 2))
        det = torch.linalg.det(J)
        return (area * sq * (1 + det ** -2)).sum()

    @staticmethod
    def backward(ctx, grad):
        uv, faces, rest_inv, area = ctx.saved_tensors
        D = _edges(uv, faces)
        J = (D @ rest_inv).detach()
        sq = J.pow(2).sum((1, 2))
        det = J[:, 0, 0] * J[:, 1, 1] - J[:, 0, 1] * J[:, 1, 0]
        cof = torch.stack([J[:, 1, 1], -J[:, 1, 0], -J[:, 0, 1], J[:, 0, 0]], -1).view(-1, 2, 2)
        P = 2 * J * (1 + det ** -2)[:, None, None] - (2 * sq / det ** 3)[:, None, None] * cof
        P = P * (grad * area)[:, None, None]
        g_D = P @ rest_inv.transpose(1, 2)
        g_b, g_c = g_D[..., 0], g_D[..., 1]
        g_uv = torch.zeros_like(uv)
        g_uv = g_uv.index_add(0, faces[:, 1], g_b).index_add(0, faces[:, 2], g_c)
        g_uv = g_uv.index_add(0, faces[:, 0], -g_b - g_c)
        return g_uv, None, D.transpose(1, 2) @ P, grad * sq * (1 + det ** -2)
