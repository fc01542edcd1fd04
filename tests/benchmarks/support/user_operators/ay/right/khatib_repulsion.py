import torch


class KhatibRepulsion(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, obs, d0, eta):
        diff = q[:, None] - obs[None]
        ctx.save_for_backward(q, obs)
        ctx.d0, ctx.eta = d0, eta
        pen = (1 / diff.norm(dim=-1) - 1 / d0).clamp(min=0)
        return 0.5 * eta * pen.square().sum(1)

    @staticmethod
    def backward(ctx, g):
        q, obs = ctx.saved_tensors
        diff = q[:, None] - obs[None]
        d = diff.norm(dim=-1)
        pen = (1 / d - 1 / ctx.d0).clamp(min=0)
        f = (-ctx.eta * g[:, None] * pen / d ** 3)[..., None] * diff
        return f.sum(1), -f.sum(0), None, None
