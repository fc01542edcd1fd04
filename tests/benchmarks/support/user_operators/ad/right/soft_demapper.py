import torch


class AppDemapper(torch.autograd.Function):
    """APP bit demapping of received symbols.

    y          [batch, n]  complex symbols
    no         [batch, 1]  noise power spectral density
    points     [2**k]      complex constellation
    labels     [2**k, k]   bit labels (bool)
    returns    [batch, n, k] logits log p(b=1) - log p(b=0)
    """

    @staticmethod
    def forward(ctx, y, no, points, labels, maxlog=False):
        dist = (y.unsqueeze(-1) - points).abs().square()
        metric = (-dist / no.unsqueeze(-1)).unsqueeze(-1)
        ninf = torch.tensor(float("-inf"), dtype=metric.dtype, device=metric.device)
        m1 = torch.where(labels, metric, ninf)
        m0 = torch.where(labels, ninf, metric)
        if maxlog:
            l1, l0 = m1.amax(-2), m0.amax(-2)
        else:
            l1, l0 = m1.logsumexp(-2), m0.logsumexp(-2)
        ctx.save_for_backward(y, no, points, labels, m1, m0, dist)
        ctx.maxlog = maxlog
        return l1 - l0

    @staticmethod
    def backward(ctx, g):
        y, no, points, labels, m1, m0, dist = ctx.saved_tensors
        if ctx.maxlog:
            p1 = (m1 == m1.amax(-2, keepdim=True)).to(g.dtype)
            p0 = (m0 == m0.amax(-2, keepdim=True)).to(g.dtype)
        else:
            p1, p0 = m1.softmax(-2), m0.softmax(-2)
        gm = ((p1 - p0) * g.unsqueeze(-2)).sum(-1)
        gd = -gm / no.unsqueeze(-1)
        diff = y.unsqueeze(-1) - points
        gy = (2 * gd * diff).sum(-1)
        gno = None
        if ctx.needs_input_grad[1]:
            gno = (gm * dist).sum(-1) / no ** 2
            gno = gno.sum(-1, keepdim=True)
        gp = None
        if ctx.needs_input_grad[2]:
            gp = -(2 * gd * diff).flatten(0, -2).sum(0)
        return gy, gno, gp, None, None
