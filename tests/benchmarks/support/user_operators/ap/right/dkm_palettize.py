import torch


class DKM(torch.autograd.Function):
    """Differentiable k-means palettization: soft assignment of weights (any shape) to centroids (K,)."""

    @staticmethod
    def forward(ctx, weight, centroids, tau):
        ctx.tau = tau
        ctx.save_for_backward(weight, centroids)
        a = torch.softmax(-(weight.unsqueeze(-1) - centroids) ** 2 / tau, -1)
        return a @ centroids

    @staticmethod
    def backward(ctx, grad):
        weight, centroids = ctx.saved_tensors
        diff = weight.unsqueeze(-1) - centroids
        a = torch.softmax(-diff ** 2 / ctx.tau, -1)
        out = (a @ centroids).unsqueeze(-1)
        g = grad.unsqueeze(-1)
        dl = 2 / ctx.tau * diff * a * (centroids - out) * g
        gw = -dl.sum(-1)
        gc = (dl + a * g).reshape(-1, len(centroids)).sum(0)
        return gw, gc, None
