import torch


class AcyclicityPenalty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, W):
        ctx.save_for_backward(W)
        E = torch.linalg.matrix_exp(W * W)
        return E.diagonal(dim1=-2, dim2=-1).sum(-1) - W.shape[-1]

    @staticmethod
    def backward(ctx, grad):
        W, = ctx.saved_tensors
        E = torch.linalg.matrix_exp(W * W)
        return 2 * grad[..., None, None] * E.mT * W
