import torch


class SoftPlus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta=1.0, threshold=20.0):
        ctx.save_for_backward(x)
        ctx.beta, ctx.threshold = beta, threshold
        bx = beta * x
        return torch.where(bx > threshold, x, torch.log1p(torch.exp(bx)) / beta)

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        bx = ctx.beta * x
        z = torch.exp(bx) / (1 + torch.exp(bx))
        return torch.where(bx > ctx.threshold, grad, grad * z), None, None
