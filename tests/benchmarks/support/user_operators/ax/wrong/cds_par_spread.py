import torch


class CDSParSpread(torch.autograd.Function):
    """Par spread of a credit default swap on piecewise-constant hazard rates.

    Parameters
    ----------
    hazard : Tensor (n,)
        Hazard rate of every period, not negative.
    discount : Tensor (n,)
        Discount factors at the payment dates, positive.
    recovery : Tensor, 0-dim
        In [0, 1).
    times : sequence of n floats
        Payment dates in years, strictly increasing and positive.
    """

    @staticmethod
    def _legs(hazard, discount, recovery, dt):
        surv = torch.exp(-torch.cumsum(hazard * dt, 0))
        before = torch.cat([torch.ones_like(surv[:1]), surv[:-1]])
        annuity = (discount * dt * (before + surv)).sum() / 2
        return surv, before, annuity, (1 - recovery) * (discount * (before - surv)).sum() / annuity

    @staticmethod
    def forward(ctx, hazard, discount, recovery, times):
        ctx.save_for_backward(hazard, discount, recovery)
        ctx.times = tuple(times)
        dt = torch.diff(hazard.new_tensor((0.0, *ctx.times)))
        return CDSParSpread._legs(hazard, discount, recovery, dt)[-1]

    @staticmethod
    def backward(ctx, grad):
        hazard, discount, recovery = ctx.saved_tensors
        dt = torch.diff(hazard.new_tensor((0.0, *ctx.times)))
        surv, before, annuity, spread = CDSParSpread._legs(hazard, discount, recovery, dt)
        g_prot, g_ann = grad / annuity, -grad * spread / annuity
        lgd = 1 - recovery
        g_disc = g_prot * lgd * (before - surv) + g_ann * dt * (before + surv) / 2
        nxt = torch.cat([discount[1:], torch.zeros_like(discount[:1])])
        nxt_dt = torch.cat([dt[1:], torch.zeros_like(dt[:1])])
        g_surv = g_prot * lgd * (nxt - discount) + g_ann * (discount * dt + nxt * nxt_dt) / 2
        g_hazard = -dt * (g_surv * surv).cumsum(0)
        return g_hazard, g_disc, -grad * spread / lgd, None
