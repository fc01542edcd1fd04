import torch


class SceneContract(torch.autograd.Function):
    """mip-NeRF 360 contraction of unbounded points: identity in the unit ball,
    (2 - 1/|x|) x/|x| outside.  x (..., 3), divided by `bound` first."""

    @staticmethod
    def forward(ctx, x, bound=1.0):
        ctx.bound = bound
        ctx.save_for_backward(x)
        x = x / bound
        r = x.square().sum(-1, keepdim=True).clamp(min=1.0).sqrt()
        return x * (2 / r - 1 / r ** 2)

    @staticmethod
    def backward(ctx, grad_out):
        x = ctx.saved_tensors[0] / ctx.bound
        sq = x.square().sum(-1, keepdim=True)
        r = sq.clamp(min=1.0).sqrt()
        a = 2 / r - 1 / r ** 2
        da = (2 / r ** 3 - 2 / r ** 2) / r
        radial = torch.where(sq > 1, da * (grad_out * x).sum(-1, keepdim=True), torch.zeros_like(sq))
        return (a * grad_out + radial * x) / ctx.bound, None
