import torch
from torch.autograd import Function


def _subtree(m, parent):
    cols = list(m.unbind(-1))
    for v in range(len(cols) - 1, 0, -1):
        cols[parent[v]] = cols[parent[v]] + cols[v]
    return torch.stack(cols, -1)


class TreeWasserstein(Function):
    """Wasserstein distance on a tree.

    Args:
        p, q (Tensor): node masses (B, V)
        w (Tensor): length of the edge above each node (V,); entry 0, the root, is unused
        parent (list[int]): parent[v] < v, parent[0] ignored
    Returns:
        Tensor (B,)
    """

    @staticmethod
    def forward(ctx, p, q, w, parent):
        ctx.save_for_backward(p, q, w)
        ctx.parent = parent
        S = _subtree(p - q, parent)
        return (S.abs() * w)[:, 1:].sum(-1)

    @staticmethod
    def backward(ctx, g):
        p, q, w = ctx.saved_tensors
        S = _subtree(p - q, ctx.parent)
        gS = g[:, None] * w * S.sign()
        down = [torch.zeros_like(g)]
        for v in range(1, w.numel()):
            down.append(gS[:, v] + down[ctx.parent[v]])
        gd = torch.stack(down, -1)
        gw = (g[:, None] * S.abs()).sum(0)
        gw = torch.cat([torch.zeros_like(gw[:1]), gw[1:]])
        return gd, -gd, gw, None
