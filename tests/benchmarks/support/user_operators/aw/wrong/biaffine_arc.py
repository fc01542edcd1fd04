import torch
from torch import nn
from torch.autograd import Function


class ArcScore(Function):
    @staticmethod
    def forward(ctx, dep, head, W):
        ctx.save_for_backward(dep, head, W)
        return torch.einsum("bid,de,bje->bij", dep, W[:-1], head) + (head @ W[-1]).unsqueeze(1)

    @staticmethod
    def backward(ctx, g):
        dep, head, W = ctx.saved_tensors
        g_dep = torch.einsum("bij,bje,de->bid", g, head, W[:-1])
        g_head = torch.einsum("bji,bid,de->bje", g, dep, W[:-1]) + g.sum(1).unsqueeze(-1) * W[-1]
        g_W = torch.einsum("bij,bid,bje->de", g, dep, head)
        g_b = torch.einsum("bij,bje->e", g, head)
        return g_dep, g_head, torch.cat([g_W, g_b[None]])


class BiaffineArc(nn.Module):
    def __init__(self, dim, arc):
        super().__init__()
        self.dep, self.head = nn.Linear(dim, arc), nn.Linear(dim, arc)
        self.W = nn.Parameter(torch.zeros(arc + 1, arc))

    def forward(self, h):
        return ArcScore.apply(self.dep(h).tanh(), self.head(h).tanh(), self.W)
