import torch


class _SoftMCC(torch.autograd.Function):
    @staticmethod
    def forward(ctx, p, y):
        ctx.save_for_backward(p, y)
        tp, fp = (p * y).sum(), (p * (1 - y)).sum()
        fn, tn = ((1 - p) * y).sum(), ((1 - p) * (1 - y)).sum()
        return 1 - (tp * tn - fp * fn) / ((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)).sqrt()

    @staticmethod
    def backward(ctx, grad):
        p, y = ctx.saved_tensors
        tp, fp = (p * y).sum(), (p * (1 - y)).sum()
        fn, tn = ((1 - p) * y).sum(), ((1 - p) * (1 - y)).sum()
        den = ((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)).sqrt()
        mcc = (tp * tn - fp * fn) / den
        d_num = y * (tn + fp) - (1 - y) * (tp + fn)
        d = d_num / den - 0.5 * mcc * (1 / (tp + fp) - 1 / (tn + fn))
        return -grad * d, None


def mcc_loss(p, y):
    return _SoftMCC.apply(p, y.to(p.dtype))
