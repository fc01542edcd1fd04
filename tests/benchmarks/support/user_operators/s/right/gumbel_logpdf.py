import torch


class GumbelLogProb(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mu, beta):
        z = (x - mu) / beta
        ctx.save_for_backward(x, mu, beta)
        return -(z + torch.exp(-z)) - beta.log()

    @staticmethod
    def backward(ctx, g):
        x, mu, beta = ctx.saved_tensors
        z = (x - mu) / beta
        dz = g * (torch.exp(-z) - 1)
        gx = dz / beta
        gb = -(dz * z + g) / beta
        return gx.sum_to_size(x.shape), (-gx).sum_to_size(mu.shape), gb.sum_to_size(beta.shape)
