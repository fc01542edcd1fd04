import torch


class _CornishFisher(torch.autograd.Function):
    @staticmethod
    def moments(x):
        mu = x.mean(0)
        sd = (x - mu).square().mean(0).sqrt()
        u = (x - mu) / sd
        return mu, sd, u, u.pow(3).mean(0), u.pow(4).mean(0)

    @staticmethod
    def weights(z):
        return (z * z - 1) / 6, (z ** 3 - 3 * z) / 24, -(2 * z ** 3 - 5 * z) / 36

    @staticmethod
    def forward(ctx, returns, z):
        mu, sd, u, skew, kurt = _CornishFisher.moments(returns)
        c1, c2, c3 = _CornishFisher.weights(z)
        ctx.save_for_backward(returns)
        ctx.z = z
        return -(mu + sd * (z + c1 * skew + c2 * (kurt - 3) + c3 * skew ** 2))

    @staticmethod
    def backward(ctx, grad):
        (returns,) = ctx.saved_tensors
        mu, sd, u, skew, kurt = _CornishFisher.moments(returns)
        z = ctx.z
        c1, c2, c3 = _CornishFisher.weights(z)
        level = z + c1 * skew + c2 * (kurt - 3) + c3 * skew ** 2
        d_skew = 3 * (u ** 2 - 1 - skew * u)
        d_kurt = 4 * (u ** 3 - skew - (kurt - 3) * u)
        d = 1 + level * u + (c1 + 2 * c3 * skew) * d_skew + c2 * d_kurt
        return -grad * d / returns.size(0), None


def cornish_fisher(returns, z=-1.6449):
    """Modified value at risk per asset, returns (T, A), z the normal quantile"""
    return _CornishFisher.apply(returns, z)
