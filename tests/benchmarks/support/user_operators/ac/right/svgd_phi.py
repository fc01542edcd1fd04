import torch


class SVGDDirection(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, score, h):
        n = x.shape[0]
        K = torch.exp(-torch.cdist(x, x).pow(2) / h)
        phi = (K @ score + 2 / h * (x * K.sum(1, keepdim=True) - K @ x)) / n
        ctx.save_for_backward(x, score)
        ctx.h = h
        return phi

    @staticmethod
    def backward(ctx, g):
        x, score = ctx.saved_tensors
        n, c = x.shape[0], 2 / ctx.h
        diff = x[:, None] - x[None]
        K = torch.exp(-(diff ** 2).sum(-1) / ctx.h)
        g = g / n
        gK = g @ score.t() + c * ((g * x).sum(1, keepdim=True) - g @ x.t())
        W = gK * K
        W = W + W.t()
        gx = c * (g * K.sum(1, keepdim=True) - K @ g)
        gx = gx - c * (W.sum(1, keepdim=True) * x - W @ x)
        return gx, K @ g, None
