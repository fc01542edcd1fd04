import torch
from torch.autograd import Function


class BarycentricProjection(Function):
    """T(x_i) = sum_j P_ij y_j / sum_j P_ij for a coupling P (n, m) with positive rows and targets Y (m, d)"""

    @staticmethod
    def forward(ctx, P, Y):
        ctx.save_for_backward(P, Y)
        return P.mm(Y) / P.sum(1, keepdim=True)

    @staticmethod
    def backward(ctx, grad_T):
        P, Y = ctx.saved_tensors
        mass = P.sum(1, keepdim=True)
        g = grad_T / mass
        T = P.mm(Y) / mass
        grad_P = grad_Y = None
        if ctx.needs_input_grad[0]:
            grad_P = g.mm(Y.t()) - (g * T).sum(1, keepdim=True)
        if ctx.needs_input_grad[1]:
            grad_Y = P.t().mm(grad_T) / P.sum(0)[:, None]
        return grad_P, grad_Y
