import torch


class ReversibleCoupling(torch.autograd.Function):
    """y1 = x1 + tanh(x2 Wf),  y2 = x2 + tanh(y1 Wg); only the outputs are stored."""

    @staticmethod
    def forward(ctx, x1, x2, Wf, Wg):
        y1 = x1 + torch.tanh(x2 @ Wf)
        y2 = x2 + torch.tanh(y1 @ Wg)
        ctx.save_for_backward(y1, y2, Wf, Wg)
        return y1, y2

    @staticmethod
    def backward(ctx, g1, g2):
        y1, y2, Wf, Wg = ctx.saved_tensors
        tg = torch.tanh(y1 @ Wg)
        x2 = y2 - tg
        tf = torch.tanh(x2 @ Wf)
        dg = g2 * (1 - tg * tg)
        g1 = g1 + dg @ Wg.t()
        df = g1 * (1 - tf * tf)
        g2 = g2 + df @ Wf.t()
        return g1, g2, x2.t() @ df, y1.t() @ dg
