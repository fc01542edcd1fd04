import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


def knn(x, k):
    d = torch.cdist(x, x)
    return d.topk(k, largest=False).indices


class EdgeMaxFn(torch.autograd.Function):
    """max_j  theta x_i + phi (x_j - x_i)"""

    @staticmethod
    def forward(ctx, x, theta, phi, idx):
        centre = x @ theta.t()
        rel = x[idx] - x[:, None]
        h = centre[:, None] + rel @ phi.t()
        out, arg = h.max(dim=1)
        ctx.save_for_backward(x, theta, phi, idx.gather(1, arg))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, theta, phi, nbr = ctx.saved_tensors  # nbr (N, Cout): chosen neighbour
        n, cout = g.shape
        g_theta = g.t() @ x
        rel = x[nbr] - x[:, None]
        g_phi = torch.einsum("no,noc->oc", g, rel)
        # each output channel goes back to its own neighbour
        to_nbr = g[..., None] * phi
        g_x = g @ (theta - phi)
        g_x = g_x.index_add(0, nbr.reshape(-1), to_nbr.reshape(n * cout, -1))
        return g_x, g_theta, g_phi, None


class EdgeConv(nn.Module):
    def __init__(self, cin, cout, k=4):
        super().__init__()
        self.k = k
        self.theta = nn.Parameter(torch.randn(cout, cin) / cin ** 0.5)
        self.phi = nn.Parameter(torch.randn(cout, cin) / cin ** 0.5)
        self.bias = nn.Parameter(torch.zeros(cout))

    def forward(self, x):
        idx = knn(x.detach(), self.k)
        return EdgeMaxFn.apply(x, self.theta, self.phi, idx) + self.bias
