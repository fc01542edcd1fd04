import torch


class MaskedCLR(torch.autograd.Function):
    # centred log-ratio over the taxa that were observed in a sample
    @staticmethod
    def forward(ctx, counts, observed):
        ctx.save_for_backward(counts, observed)
        logs = torch.where(observed, counts, torch.ones_like(counts)).log()
        n = observed.sum(-1, keepdim=True).clamp(min=1)
        return (logs - logs.sum(-1, keepdim=True) / n) * observed

    @staticmethod
    def backward(ctx, g):
        counts, observed = ctx.saved_tensors
        n = observed.sum(-1, keepdim=True).clamp(min=1)
        g = g * observed
        g = (g - g.sum(-1, keepdim=True) / n) * observed
        return g / torch.where(observed, counts, torch.ones_like(counts)), None
