import torch


class NashSutcliffe(torch.autograd.Function):
    """Nash-Sutcliffe efficiency of a simulated series.

    Args:
        simulated: (T,)
        observed: (T,) with NaN where there is no observation; not differentiated.
    """

    @staticmethod
    def forward(ctx, simulated, observed):
        valid = ~torch.isnan(observed)
        obs = observed[valid]
        spread = (obs - obs.mean()).square().sum()
        ctx.save_for_backward(simulated, observed, valid, spread)
        return 1 - (simulated[valid] - obs).square().sum() / spread

    @staticmethod
    def backward(ctx, grad_output):
        simulated, observed, valid, spread = ctx.saved_tensors
        error = (simulated - observed) * valid
        return -2 * grad_output * error / spread, None
