import torch


class _NoisyOr(torch.autograd.Function):
    @staticmethod
    def forward(ctx, p, w):
        ctx.save_for_backward(p, w)
        return 1 - (1 - p * w).prod(1)

    @staticmethod
    def backward(ctx, g):
        p, w = ctx.saved_tensors
        q = 1 - p * w
        one = torch.ones_like(q[:, :1])
        l = torch.cat([one, q[:, :-1]], 1).cumprod(1)
        r = torch.cat([one, q.flip(1)[:, :-1]], 1).cumprod(1).flip(1)
        rest = l * r * g[:, None]
        return rest * w, (rest * p).sum(0)


def noisyor(p, w=None):
    # p B K in [0,1], w K leak weights
    if w is None:
        w = p.new_ones(p.size(1))
    return _NoisyOr.apply(p, w)
