import torch


class _BrayCurtis(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        num = (x[:, None] - y[None]).abs().sum(-1)
        return num / (x.sum(-1)[:, None] + y.sum(-1))

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        diff = x[:, None] - y[None]
        den = x.sum(-1)[:, None] + y.sum(-1)
        bc = diff.abs().sum(-1) / den
        a = (grad / den)[..., None] * diff.sign()
        b = (grad * bc / den)[..., None]
        gx = (a - b).sum(1) if ctx.needs_input_grad[0] else None
        gy = (-a - b).sum(0) if ctx.needs_input_grad[1] else None
        return gx, gy


def bray_curtis(x, y=None):
    return _BrayCurtis.apply(x, x if y is None else y)
