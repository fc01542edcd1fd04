import torch


class MeanFill(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        m = mask.unsqueeze(-1)
        n = (~m).sum(1, keepdim=True).clamp(min=1)
        mean = x.masked_fill(m, 0).sum(1, keepdim=True) / n
        return torch.where(m, mean, x)

    @staticmethod
    def backward(ctx, grad):
        m = ctx.saved_tensors[0].unsqueeze(-1)
        n = (~m).sum(1, keepdim=True).clamp(min=1)
        spread = grad.masked_fill(~m, 0).sum(1, keepdim=True) / n
        return (grad + spread).masked_fill(m, 0), None


def mean_fill(x, mask):
    return MeanFill.apply(x, mask)
