import torch
import torch.nn as nn
import torch.nn.functional as F


class _TreeLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h, nodes, path, code, mask):
        z = torch.einsum("bd,bld->bl", h, nodes[path])
        ctx.save_for_backward(h, nodes, path, code, mask)
        return (F.softplus(-code * z) * mask).sum(1)

    @staticmethod
    def backward(ctx, g):
        h, nodes, path, code, mask = ctx.saved_tensors
        w = nodes[path]
        z = torch.einsum("bd,bld->bl", h, w)
        gz = -code * torch.sigmoid(-code * z) * g[:, None]
        gh = torch.einsum("bl,bld->bd", gz, w)
        gn = torch.zeros_like(nodes).index_add(0, path.reshape(-1), (gz[..., None] * h[:, None]).flatten(0, 1))
        return gh, gn, None, None, None


class HierarchicalSoftmaxLoss(nn.Module):
    """
    word2vec style hierarchical softmax, one loss per row.

    path (B, L) int64: inner nodes from the root to the word, padded with any valid node
    code (B, L): +1 / -1, left or right
    lengths (B,) int64: path lengths, at most L
    """

    def __init__(self, n_nodes, dim):
        super().__init__()
        self.nodes = nn.Parameter(torch.randn(n_nodes, dim) * 0.1)

    def forward(self, h, path, code, lengths):
        mask = (torch.arange(path.shape[1], device=h.device) < lengths[:, None]).to(h.dtype)
        return _TreeLoss.apply(h, self.nodes, path, code.to(h.dtype), mask)
