import torch
from torch import nn


class AddRelBias(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, table, index):
        ctx.save_for_backward(index)
        ctx.num = table.shape[0]
        return scores + table[index].permute(2, 0, 1)

    @staticmethod
    def backward(ctx, g):
        index, = ctx.saved_tensors
        per_pair = g.sum(0).permute(1, 2, 0)
        flat = per_pair.reshape(-1, per_pair.shape[-1])
        gt = torch.zeros(ctx.num, flat.shape[1], dtype=g.dtype, device=g.device)
        return g, gt.index_add(0, index.reshape(-1), flat), None


class RelativePositionBias(nn.Module):

    def __init__(self, heads, max_distance):
        super().__init__()
        self.max_distance = max_distance
        self.table = nn.Parameter(torch.zeros(2 * max_distance + 1, heads))

    def forward(self, scores):
        n, m = scores.shape[-2:]
        i = torch.arange(n, device=scores.device)[:, None]
        j = torch.arange(m, device=scores.device)[None, :]
        r = self.max_distance
        return AddRelBias.apply(scores, self.table, (i - j).clamp(-r, r) + r)
