import torch


class TemperedSoftmax(torch.autograd.Function):
    """softmax(x / T) along the last axis; T may be a tensor that broadcasts and is trained."""

    @staticmethod
    def forward(ctx, x, T):
        y = torch.softmax(x / T, -1)
        ctx.save_for_backward(x, T, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, T, y = ctx.saved_tensors
        gz = y * (g - (g * y).sum(-1, keepdim=True))
        gx = (gz / T).sum_to_size(x.shape)
        gT = (-gz * x / T).sum_to_size(T.shape)
        return gx, gT
