import torch
import torch.nn as nn


def propagate(h, src, dst, w):
    return torch.zeros_like(h).index_add(0, dst, w.unsqueeze(1) * h[src])


class PPRFunction(torch.autograd.Function):
    # H_0 = X ; H_{k+1} = (1-a) A H_k + a X

    @staticmethod
    def forward(ctx, x, a, src, dst, w, K):
        h = x
        for _ in range(K):
            h = (1 - a) * propagate(h, src, dst, w) + a * x
        ctx.save_for_backward(x, a, src, dst, w)
        ctx.K = K
        return h

    @staticmethod
    def backward(ctx, g):
        x, a, src, dst, w = ctx.saved_tensors
        prop = []
        h = x
        for _ in range(ctx.K):
            ah = propagate(h, src, dst, w)
            prop.append(ah)
            h = (1 - a) * ah + a * x
        gx = torch.zeros_like(x)
        ga = torch.zeros_like(a)
        for ah in reversed(prop):
            ga = ga + (g * (x - ah)).sum()
            gx = a * g
            g = (1 - a) * propagate(g, dst, src, w)
        return gx + g, ga, None, None, None, None


class APPNP(nn.Module):
    """Personalised PageRank propagation with a learned teleport probability.

    forward(x, edge_index): x (N, F), edge_index (2, E) directed; in-degree normalisation.
    """

    def __init__(self, K=3, teleport=0.2):
        super().__init__()
        self.K = K
        self.logit = nn.Parameter(torch.tensor(teleport).logit())

    def forward(self, x, edge_index):
        src, dst = edge_index
        deg = torch.zeros(x.size(0), dtype=x.dtype, device=x.device)
        deg = deg.index_add(0, dst, torch.ones_like(dst, dtype=x.dtype))
        w = 1 / deg[dst]
        return PPRFunction.apply(x, torch.sigmoid(self.logit), src, dst, w, self.K)
