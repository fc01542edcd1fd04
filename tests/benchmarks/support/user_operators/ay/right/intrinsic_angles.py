import torch


class CornerAngles(torch.autograd.Function):
    @staticmethod
    def forward(ctx, l):
        ctx.save_for_backward(l)
        b, c = l.roll(-1, 1), l.roll(-2, 1)
        return torch.acos((b * b + c * c - l * l) / (2 * b * c))

    @staticmethod
    def backward(ctx, g):
        l, = ctx.saved_tensors
        b, c = l.roll(-1, 1), l.roll(-2, 1)
        cos = (b * b + c * c - l * l) / (2 * b * c)
        area2 = (b * c * torch.sqrt(1 - cos * cos))
        e = g * l / area2
        return e - e.roll(-1, 1) * cos.roll(-2, 1) - e.roll(-2, 1) * cos.roll(-1, 1)
