import torch
from torch import nn


class CSRMean(torch.autograd.Function):
    """Mean over the neighbours of each node, the graph in CSR form (indptr, indices)."""

    @staticmethod
    def forward(ctx, x, indptr, indices):
        out = x.new_zeros(len(indptr) - 1, x.shape[1])
        for i in range(len(indptr) - 1):
            nb = indices[indptr[i]:indptr[i + 1]]
            if len(nb):
                out[i] = x[nb].mean(0)
        ctx.save_for_backward(indptr, indices)
        ctx.num_src = x.shape[0]
        return out

    @staticmethod
    def backward(ctx, grad):
        indptr, indices = ctx.saved_tensors
        deg = indptr[1:] - indptr[:-1]
        dst = torch.repeat_interleave(torch.arange(len(deg), device=grad.device), deg)
        msg = grad[dst] / deg[dst].unsqueeze(1)
        gx = grad.new_zeros(ctx.num_src, grad.shape[1]).index_add(0, indices, msg)
        return gx, None, None


class SAGEMeanConv(nn.Module):
    def __init__(self, in_dim, out_dim, root_weight=True):
        super().__init__()
        self.lin_nb = nn.Linear(in_dim, out_dim)
        self.lin_root = nn.Linear(in_dim, out_dim, bias=False) if root_weight else None

    def forward(self, x, indptr, indices):
        out = self.lin_nb(CSRMean.apply(x, indptr, indices))
        if self.lin_root is not None:
            out = out + self.lin_root(x)
        return out
