import torch


class SwishBeta(torch.autograd.Function):
    """x * sigmoid(beta * x), beta is trained (a scalar)."""

    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x, beta)
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def backward(ctx, grad_output):
        x, beta = ctx.saved_tensors
        s = torch.sigmoid(beta * x)
        ds = s * (1 - s)
        grad_x = grad_output * (s + x * ds)
        grad_beta = (grad_output * x * x * ds).sum().reshape(beta.shape)
        return grad_x, grad_beta
