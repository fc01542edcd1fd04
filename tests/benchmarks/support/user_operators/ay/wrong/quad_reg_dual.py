import torch


class QuadRegDual(torch.autograd.Function):
    @staticmethod
    def forward(ctx, f, g, C, a, b, eps):
        r = (f[:, None] + g - C).clamp(min=0)
        ctx.save_for_backward(f, g, r, a, b)
        ctx.eps = eps
        return a @ f + b @ g - r.square().sum() / (2 * eps)

    @staticmethod
    def backward(ctx, go):
        f, g, r, a, b = ctx.saved_tensors
        plan = r / ctx.eps
        return go * (a - plan.sum(1)), go * (b - plan.sum(0)), go * plan, go * f, go * g, None
