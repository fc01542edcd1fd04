import torch


class SortinoRatio(torch.autograd.Function):
    """Mean excess return over downside deviation.

    Parameters
    ----------
    returns : Tensor
        Some return below the target on every path.
    target : Tensor, 0-dim
    dim : int
        Time axis, reduced.
    periods : float
        Periods per year, to annualise with.
    """

    @staticmethod
    def forward(ctx, returns, target, dim=-1, periods=1.0):
        ctx.save_for_backward(returns, target)
        ctx.dim, ctx.root = dim, periods**0.5
        excess = returns - target
        downside = excess.clamp(max=0).pow(2).mean(dim).sqrt()
        return ctx.root * excess.mean(dim) / downside

    @staticmethod
    def backward(ctx, grad):
        returns, target = ctx.saved_tensors
        dim, n = ctx.dim, returns.shape[ctx.dim]
        excess = returns - target
        short = excess.clamp(max=0)
        downside = short.pow(2).mean(dim, keepdim=True).sqrt()
        slope = 1 / downside - excess.mean(dim, keepdim=True) * short / downside**3
        g = grad.unsqueeze(dim) * slope * ctx.root / n
        return g, -g.sum(), None, None
