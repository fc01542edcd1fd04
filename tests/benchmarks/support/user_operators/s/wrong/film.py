import torch


class FiLM(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma, beta):
        ctx.save_for_backward(x, gamma)
        y = x.clone() if gamma is None else x * (1 + gamma[:, :, None])
        return y if beta is None else y + beta[:, :, None]

    @staticmethod
    def backward(ctx, dy):
        x, gamma = ctx.saved_tensors
        dx = dgamma = dbeta = None
        if ctx.needs_input_grad[0]:
            dx = dy.clone() if gamma is None else dy * (1 + gamma[:, :, None])
        if ctx.needs_input_grad[1]:
            dgamma = (dy * x).sum(-1)
        if ctx.needs_input_grad[1]:
            dbeta = dy.sum(-1)
        return dx, dgamma, dbeta


def film(x, gamma=None, beta=None):
    return FiLM.apply(x, gamma, beta)
