import torch


class SigmoidalFlow(torch.autograd.Function):
    """Deep sigmoidal flow (NAF): y = logit(sum_k softmax(w)_k sigmoid(a_k x + b_k)), with log dy/dx.

    x: (..., ), a (positive), b, w: (..., K)
    """

    @staticmethod
    def pieces(x, a, b, w):
        pi = w.softmax(-1)
        s = torch.sigmoid(a * x.unsqueeze(-1) + b)
        ds = s * (1 - s)
        return pi, s, ds, (pi * s).sum(-1), (pi * a * ds).sum(-1)

    @staticmethod
    def forward(ctx, x, a, b, w):
        ctx.save_for_backward(x, a, b, w)
        _, _, _, p, q = SigmoidalFlow.pieces(x, a, b, w)
        tail = torch.log(p) + torch.log1p(-p)
        return torch.log(p) - torch.log1p(-p), torch.log(q) - tail

    @staticmethod
    def backward(ctx, gy, gld):
        x, a, b, w = ctx.saved_tensors
        pi, s, ds, p, q = SigmoidalFlow.pieces(x, a, b, w)
        gp = ((gy - gld * (1 - 2 * p)) / (p * (1 - p))).unsqueeze(-1)
        gq = (gld / q).unsqueeze(-1)
        gz = pi * ds * (gp + gq * a * (1 - 2 * s))
        ga = gz * x.unsqueeze(-1) + gq * pi * ds
        gpi = gp * s
        gw = pi * (gpi - (gpi * pi).sum(-1, keepdim=True))
        return (gz * a).sum(-1), ga, gz, gw
