import torch


class _PreEmphasis(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, coef):
        ctx.save_for_backward(x, coef)
        return torch.cat([x[..., :1], x[..., 1:] - coef * x[..., :-1]], -1)

    @staticmethod
    def backward(ctx, g):
        x, coef = ctx.saved_tensors
        gx = torch.cat([g[..., :-1] - coef * g[..., 1:], g[..., -1:]], -1)
        gc = -(g[..., 1:] * x[..., :-1]).sum()
        return gx, gc.reshape(coef.shape)


def preemphasis(wave, coef, flip=False):
    # wave (..., T), coef: a learned scalar; flip runs backwards in time
    if flip:
        return _PreEmphasis.apply(wave.flip(-1), coef).flip(-1)
    return _PreEmphasis.apply(wave, coef)
