import torch


class CPReconstruct(torch.autograd.Function):
    """Full tensor of a weighted rank-R CP decomposition, T[i,j,k] = sum_r w_r A_ir B_jr C_kr."""

    @staticmethod
    def forward(ctx, weights, A, B, C):
        ctx.save_for_backward(weights, A, B, C)
        return torch.einsum("r,ir,jr,kr->ijk", weights, A, B, C)

    @staticmethod
    def backward(ctx, grad):
        weights, A, B, C = ctx.saved_tensors
        # MTTKRP with each mode left out
        mA = torch.einsum("ijk,jr,kr->ir", grad, B, C)
        mB = torch.einsum("ijk,ir,kr->jr", grad, A, C)
        mC = torch.einsum("ijk,ir,jr->kr", grad, A, B)
        grad_w = (mA * A).sum(0)
        return grad_w, mA * weights, mB * weights, mC * weights
