import torch
from torch import nn


class VladAggregate(torch.autograd.Function):
    """V[b,k,:] = sum_n a[b,k,n] (x[b,:,n] - c[k,:])"""

    @staticmethod
    def forward(ctx, x, a, c):
        ctx.save_for_backward(x, a, c)
        return torch.einsum("bkn,bdn->bkd", a, x) - a.sum(2).unsqueeze(2) * c

    @staticmethod
    def backward(ctx, g):
        x, a, c = ctx.saved_tensors
        gx = torch.einsum("bkd,bkn->bdn", g, a)
        ga = torch.einsum("bkd,bdn->bkn", g, x) - (g * c).sum(2, keepdim=True)
        gc = -(a.sum(2).unsqueeze(2) * g).sum(0)
        return gx, ga, gc


class NetVLAD(nn.Module):

    def __init__(self, clusters, dim, alpha=2.0, intra_norm=True, seed=0):
        super().__init__()
        g = torch.Generator().manual_seed(seed)
        cent = torch.rand(clusters, dim, generator=g)
        self.centroids = nn.Parameter(cent)
        self.conv_weight = nn.Parameter(2 * alpha * cent)
        self.conv_bias = nn.Parameter(-alpha * cent.norm(dim=1))
        self.intra_norm = intra_norm

    def forward(self, x):
        # x: B x D x N local descriptors
        logits = torch.einsum("kd,bdn->bkn", self.conv_weight, x) + self.conv_bias[:, None]
        v = VladAggregate.apply(x, logits.softmax(1), self.centroids)
        if self.intra_norm:
            v = nn.functional.normalize(v, dim=2)
        return nn.functional.normalize(v.flatten(1), dim=1)
