import torch
import torch.nn as nn


class _SnowBucket(torch.autograd.Function):
    @staticmethod
    def forward(ctx, precip, temp, swe0, ddf, t_melt):
        swe = swe0
        melts, limited = [], []
        for t in range(precip.shape[0]):
            cold = (temp[t] <= 0).to(precip.dtype)
            store = swe + precip[t] * cold
            pot = ddf * (temp[t] - t_melt).clamp(min=0)
            lim = pot > store
            melt = torch.where(lim, store, pot)
            swe = store - melt
            melts.append(melt + precip[t] * (1 - cold))
            limited.append(lim)
        ctx.save_for_backward(temp, torch.stack(limited), ddf, t_melt)
        return torch.stack(melts), swe

    @staticmethod
    def backward(ctx, g_out, g_swe):
        temp, limited, ddf, t_melt = ctx.saved_tensors
        lam = g_swe
        gp = torch.zeros_like(temp)
        gt = torch.zeros_like(temp)
        gd = torch.zeros_like(ddf)
        gm = torch.zeros_like(t_melt)
        zero = torch.zeros_like(lam)
        for t in range(temp.shape[0] - 1, -1, -1):
            cold = (temp[t] <= 0).to(temp.dtype)
            d_melt = g_out[t] - lam
            d_store = lam + torch.where(limited[t], d_melt, zero)
            d_pot = torch.where(limited[t], zero, d_melt)
            warm = (temp[t] > t_melt).to(temp.dtype)
            gd = gd + (d_pot * (temp[t] - t_melt) * warm).sum()
            gt[t] = d_pot * ddf * warm
            gm = gm - (d_pot * ddf * warm).sum()
            gp[t] = d_store * cold + g_out[t] * (1 - cold)
            lam = d_store
        return gp, gt, lam, gd, gm


class DegreeDaySnow(nn.Module):
    """Degree-day snow module; inputs (time, basins), returns liquid water and the final pack."""

    def __init__(self, ddf=2.5, t_melt=0.2):
        super().__init__()
        self.ddf = nn.Parameter(torch.tensor(float(ddf)))
        self.t_melt = nn.Parameter(torch.tensor(float(t_melt)))
        self.swe = None

    def forward(self, precip, temp, swe0=None):
        if swe0 is None:
            swe0 = torch.zeros_like(precip[0]) if self.swe is None else self.swe
        water, swe = _SnowBucket.apply(precip, temp, swe0, self.ddf, self.t_melt)
        self.swe = swe.detach()
        return water, swe
