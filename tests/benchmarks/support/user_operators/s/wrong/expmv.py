import torch


class ExpmMV(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A, v):
        ctx.save_for_backward(A, v)
        return torch.matrix_exp(A) @ v

    @staticmethod
    def backward(ctx, g):
        A, v = ctx.saved_tensors
        n = A.shape[-1]
        AH = A.mT
        top = torch.cat([AH, g @ v.mH], -1)
        bottom = torch.cat([torch.zeros_like(AH), AH], -1)
        E = torch.matrix_exp(torch.cat([top, bottom], -2))
        return E[..., :n, n:], E[..., :n, :n] @ g
