"""Statistics pooling of x-vectors with lengths."""
import torch


class StatsPooling(torch.autograd.Function):
    """Mean and standard deviation over the valid frames of each utterance.

    x (B, C, T), lengths (B,) int with 1 <= lengths <= T.
    Returns mean (B, C) and std (B, C) = sqrt(biased variance + eps).
    """

    @staticmethod
    def _mask(x, lengths):
        t = torch.arange(x.size(-1), device=x.device)
        return (t[None, :] < lengths[:, None]).unsqueeze(1).to(x.dtype)

    @staticmethod
    def forward(ctx, x, lengths, eps=1e-5):
        m = StatsPooling._mask(x, lengths)
        n = lengths.to(x.dtype).view(-1, 1)
        mean = (x * m).sum(-1) / n
        var = ((x - mean.unsqueeze(-1)) ** 2 * m).sum(-1) / n
        std = (var + eps).sqrt()
        ctx.save_for_backward(x, lengths, mean, std)
        return mean, std

    @staticmethod
    def backward(ctx, g_mean, g_std):
        x, lengths, mean, std = ctx.saved_tensors
        m = StatsPooling._mask(x, lengths)
        n = lengths.to(x.dtype).view(-1, 1)
        centred = (x - mean.unsqueeze(-1)) * m
        gx = (g_mean / n).unsqueeze(-1) * m
        return gx, None, None
