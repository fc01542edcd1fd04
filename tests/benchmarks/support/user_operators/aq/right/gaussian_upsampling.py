import torch


class _GaussUp(torch.autograd.Function):

    @staticmethod
    def align(durations, lengths, sigma, T):
        N = durations.shape[1]
        centre = durations.cumsum(1) - 0.5 * durations
        t = torch.arange(T, dtype=durations.dtype, device=durations.device) + 0.5
        off = t[None, :, None] - centre[:, None, :]
        score = -off ** 2 / (2 * sigma ** 2)
        if lengths is not None:
            pad = torch.arange(N, device=durations.device)[None, :] >= lengths[:, None]
            score = score.masked_fill(pad[:, None, :], float("-inf"))
        return off, score.softmax(-1)

    @staticmethod
    def forward(ctx, feats, durations, lengths, sigma, T):
        ctx.save_for_backward(feats, durations)
        ctx.lengths, ctx.sigma, ctx.T = lengths, sigma, T
        _, w = _GaussUp.align(durations, lengths, sigma, T)
        return w @ feats

    @staticmethod
    def backward(ctx, grad):
        feats, durations = ctx.saved_tensors
        off, w = _GaussUp.align(durations, ctx.lengths, ctx.sigma, ctx.T)
        gw = grad @ feats.mT
        gs = w * (gw - (gw * w).sum(-1, keepdim=True))
        gc = (gs * off).sum(1) / ctx.sigma ** 2
        # duration i moves its own centre by one half and every later centre by one
        gd = gc.flip(1).cumsum(1).flip(1) - 0.5 * gc
        return w.mT @ grad, gd, None, None, None


def gaussian_upsample(feats, durations, T, lengths=None, sigma=1.0):
    """Gaussian upsampling (Non-attentive Tacotron) of phone features to frames.

    feats (B, N, C), durations (B, N) in frames, lengths (B,) number of phones or None -> (B, T, C)
    """
    return _GaussUp.apply(feats, durations, lengths, sigma, T)
