import torch


class LogWealth(torch.autograd.Function):
    """Kelly objective. weights (n,), returns (T, n): mean_t log(1 + returns_t . weights)"""

    @staticmethod
    def forward(ctx, weights, returns):
        growth = 1 + returns @ weights
        LogWealth.growth = growth
        ctx.save_for_backward(weights, returns)
        return growth.log().mean()

    @staticmethod
    def backward(ctx, grad):
        weights, returns = ctx.saved_tensors
        growth = LogWealth.growth
        s = grad / growth / growth.shape[0]
        return returns.T @ s, torch.outer(s, weights)
