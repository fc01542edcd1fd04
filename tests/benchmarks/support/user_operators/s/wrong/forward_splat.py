import torch


class SoftmaxSplat1d(torch.autograd.Function):
    """Forward warping of a scanline: sample t goes to t + flow[t], blended with exp(metric).

    src, flow, metric: (B, T).  What leaves the line is lost; places that nothing reaches are 0.
    """

    EPS = 1e-7

    @staticmethod
    def sides(flow):
        T = flow.shape[-1]
        pos = torch.arange(T, device=flow.device) + flow
        lo = pos.detach().floor()
        frac = pos - lo
        lo = lo.long()
        for at, share, sign in ((lo, 1 - frac, -1.0), (lo + 1, frac, 1.0)):
            ok = (at >= 0) & (at < T)
            yield at.clamp(0, T - 1), share * ok, sign * ok

    @staticmethod
    def sums(src, flow, metric):
        num, den = torch.zeros_like(src), torch.zeros_like(src)
        for at, share, _ in SoftmaxSplat1d.sides(flow):
            c = metric.exp() * share
            num = num.scatter_add(-1, at, c * src)
            den = den.scatter_add(-1, at, c)
        return num, den + SoftmaxSplat1d.EPS

    @staticmethod
    def forward(ctx, src, flow, metric):
        ctx.save_for_backward(src, flow, metric)
        num, den = SoftmaxSplat1d.sums(src, flow, metric)
        return num / den

    @staticmethod
    def backward(ctx, grad):
        src, flow, metric = ctx.saved_tensors
        num, den = SoftmaxSplat1d.sums(src, flow, metric)
        gnum, gden = grad / den, -grad * num / den**2
        e = metric.exp()
        gsrc = gflow = gmetric = 0
        for at, share, sign in SoftmaxSplat1d.sides(flow):
            gn, gd = gnum.gather(-1, at), gden.gather(-1, at)
            gsrc = gsrc + gn * e * share
            gc = gn * src + gd
            gflow = gflow + gn * src * e * sign
            gmetric = gmetric + gc * e * share
        return gsrc, gflow, gmetric
