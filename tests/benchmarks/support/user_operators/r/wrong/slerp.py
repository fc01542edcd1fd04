import torch


class Slerp(torch.autograd.Function):
    # unit q0, q1 with an angle in (0, pi), t in [0, 1]
    @staticmethod
    def forward(ctx, q0, q1, t):
        ctx.save_for_backward(q0, q1, t)
        th = (q0 * q1).sum(-1, keepdim=True).acos()
        return (q0 * torch.sin((1 - t) * th) + q1 * torch.sin(t * th)) / th.sin()

    @staticmethod
    def backward(ctx, g):
        q0, q1, t = ctx.saved_tensors
        d = (q0 * q1).sum(-1, keepdim=True)
        th = d.acos()
        s = th.sin()
        a, b = torch.sin((1 - t) * th) / s, torch.sin(t * th) / s
        da = (1 - t) * torch.cos((1 - t) * th) / s - a * d / s
        db = t * torch.cos(t * th) / s - b * d / s
        ga, gb = (g * q0).sum(-1, keepdim=True), (g * q1).sum(-1, keepdim=True)
        gd = -(ga * da + gb * db) / s
        gt = th / s * (gb * torch.cos(t * th) - ga * torch.cos((1 - t) * th))
        return g * a + gd * q0, g * b + gd * q1, gt.sum_to_size(t.shape)
