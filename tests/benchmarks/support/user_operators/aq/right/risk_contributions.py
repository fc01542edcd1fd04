import torch


class RiskContribution(torch.autograd.Function):
    """Euler allocation of volatility.  w (n,), cov (n, n)  ->  w_i (cov w)_i / sqrt(w' cov w)"""

    @staticmethod
    def forward(ctx, w, cov):
        v = cov @ w
        vol = torch.sqrt(w @ v)
        ctx.save_for_backward(w, cov)
        return w * v / vol

    @staticmethod
    def backward(ctx, g):
        w, cov = ctx.saved_tensors
        v = cov @ w
        vol = torch.sqrt(w @ v)
        gvol = -(g * w * v).sum() / vol ** 2
        gv = g * w / vol + gvol * w / (2 * vol)
        gw = g * v / vol + gvol * v / (2 * vol) + cov.T @ gv
        return gw, torch.outer(gv, w)
