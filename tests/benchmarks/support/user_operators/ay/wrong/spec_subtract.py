import torch


class _SpecSub(torch.autograd.Function):
    @staticmethod
    def forward(ctx, power, noise, over, floor):
        ctx.save_for_backward(power, noise)
        ctx.over, ctx.floor = over, floor
        return torch.maximum(power - over * noise, floor * power)

    @staticmethod
    def backward(ctx, g):
        power, noise = ctx.saved_tensors
        keep = power - ctx.over * noise > ctx.floor * power
        gp = torch.where(keep, g, ctx.floor * g)
        gn = g.masked_fill_(~keep, 0)
        return gp.sum_to_size(power.shape), (-ctx.over * gn).sum_to_size(noise.shape), None, None


def spectral_subtraction(power, noise, over=2.0, floor=0.02):
    return _SpecSub.apply(power, noise, over, floor)
