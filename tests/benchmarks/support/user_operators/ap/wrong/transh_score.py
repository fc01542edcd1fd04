import torch
from torch import nn


class HyperplaneDistance(torch.autograd.Function):
    @staticmethod
    def forward(ctx, head, tail, normal, trans, rel):
        ctx.save_for_backward(head, tail, normal, trans, rel)
        w = torch.nn.functional.normalize(normal[rel], dim=-1)
        d = head - tail
        return (d - (w * d).sum(-1, keepdim=True) * w + trans[rel]).norm(dim=-1)

    @staticmethod
    def backward(ctx, grad):
        head, tail, normal, trans, rel = ctx.saved_tensors
        n = normal[rel]
        length = n.norm(dim=-1, keepdim=True)
        w = n / length
        d = head - tail
        wd = (w * d).sum(-1, keepdim=True)
        e = d - wd * w + trans[rel]
        u = grad.unsqueeze(-1) * e / e.norm(dim=-1, keepdim=True)
        wu = (w * u).sum(-1, keepdim=True)
        gd = u - wu * w
        gw = -wd * u - wu * d
        gn = (gw - w * (w * gw).sum(-1, keepdim=True)) / length
        g_normal = torch.zeros_like(normal).index_add(0, rel, gn)
        g_trans = torch.zeros_like(trans).index_copy(0, rel, u)
        return gd, -gd, g_normal, g_trans, None


class TransH(nn.Module):
    """Distance of TransH. head, tail: (B, dim) entity vectors, rel: (B,) relation ids"""

    def __init__(self, num_relations, dim):
        super().__init__()
        self.normal = nn.Parameter(torch.randn(num_relations, dim))
        self.trans = nn.Parameter(torch.randn(num_relations, dim))

    def forward(self, head, tail, rel):
        return HyperplaneDistance.apply(head, tail, self.normal, self.trans, rel)
