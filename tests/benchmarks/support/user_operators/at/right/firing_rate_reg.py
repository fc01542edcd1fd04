import torch


class FiringRateReg(torch.autograd.Function):
    # spikes: T x B x N, valid: T x B bool or None; keeps every neuron's rate between lower and upper
    @staticmethod
    def forward(ctx, spikes, valid=None, lower=0.1, upper=0.4, l_low=1.0, l_up=1.0):
        ctx.hp = lower, upper, l_low, l_up
        ctx.save_for_backward(spikes, valid)
        rate = FiringRateReg.rate(spikes, valid)[0]
        low, up = (lower - rate).clamp(min=0), (rate - upper).clamp(min=0)
        return (l_low * low.pow(2) + l_up * up.pow(2)).sum()

    @staticmethod
    def rate(spikes, valid):
        if valid is None:
            return spikes.mean((0, 1)), spikes.size(0) * spikes.size(1)
        count = valid.sum().clamp(min=1)
        return (spikes * valid.unsqueeze(-1)).sum((0, 1)) / count, count

    @staticmethod
    def backward(ctx, *grads):
        spikes, valid = ctx.saved_tensors
        lower, upper, l_low, l_up = ctx.hp
        rate, count = FiringRateReg.rate(spikes, valid)
        g = 2 * l_up * (rate - upper).clamp(min=0) - 2 * l_low * (lower - rate).clamp(min=0)
        g = (grads[0] * g / count).expand_as(spikes)
        if valid is not None:
            g = g * valid.unsqueeze(-1)
        return g, None, None, None, None, None
