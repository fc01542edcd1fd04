import torch
from torch.autograd import Function


class GroupedGEMM(Function):
    """Tokens sorted by expert times each expert's own weight.

    x [tokens, d_in], sizes: list with the tokens per expert, weights: one [d_in, d_out] per expert
    """

    @staticmethod
    def forward(ctx, x, sizes, *weights):
        ctx.sizes = sizes
        ctx.save_for_backward(x, *weights)
        return torch.cat([xe @ w for xe, w in zip(x.split(sizes), weights)])

    @staticmethod
    def backward(ctx, grad_out):
        x, *weights = ctx.saved_tensors
        grad_x, grad_w = [], []
        for xe, ge, w in zip(x.split(ctx.sizes), grad_out.split(ctx.sizes), weights):
            if xe.shape[0] == 0:
                grad_w.append(torch.zeros_like(w))
                continue
            grad_x.append(ge @ w.t())
            grad_w.append(xe.t() @ ge)
        return (torch.cat(grad_x), None, *grad_w)
