import torch


class SPDInverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A):
        inv = torch.cholesky_inverse(torch.linalg.cholesky(0.5 * (A + A.mT)))
        ctx.save_for_backward(A, inv)
        return inv

    @staticmethod
    def backward(ctx, g):
        with torch.no_grad():
            inv = torch.linalg.inv(ctx.saved_tensors[0])
        gA = -inv @ g @ inv
        return 0.5 * (gA + gA.mT)
