import torch


class _SegmentAlign(torch.autograd.Function):
    @staticmethod
    def sample_points(feats, seg, bins, n):
        frac = (torch.arange(bins * n, dtype=seg.dtype, device=seg.device) + 0.5) / (bins * n)
        pos = seg[:, :1] + frac * (seg[:, 1:] - seg[:, :1])
        last = feats.shape[1] - 1
        inside = (pos > 0) & (pos < last)
        pos = pos.clamp(0, last)
        low = pos.detach().floor().clamp(max=max(last - 1, 0)).long()
        return frac, inside, low, (low + 1).clamp(max=last), pos - low

    @staticmethod
    def forward(ctx, feats, seg, bins, n):
        ctx.save_for_backward(feats, seg)
        ctx.bins, ctx.n = bins, n
        _, _, low, high, t = _SegmentAlign.sample_points(feats, seg, bins, n)
        v = (1 - t) * feats[:, low] + t * feats[:, high]  # C, S, bins * n
        return v.reshape(*v.shape[:2], bins, n).mean(-1).transpose(0, 1)

    @staticmethod
    def backward(ctx, grad):
        feats, seg = ctx.saved_tensors
        C, T = feats.shape
        frac, inside, low, high, t = _SegmentAlign.sample_points(feats, seg, ctx.bins, ctx.n)
        g = grad.transpose(0, 1).repeat_interleave(ctx.n, -1) / ctx.n
        row = T * torch.arange(C, device=feats.device)[:, None, None]
        gf = torch.zeros(C, T, dtype=feats.dtype, device=feats.device)
        gf.reshape(-1).index_add_(0, (row + low).reshape(-1), (g * (1 - t)).reshape(-1))
        gf.reshape(-1).index_add_(0, (row + high).reshape(-1), (g * t).reshape(-1))
        gpos = (g * (feats[:, high] - feats[:, low])).sum(0) * inside
        return gf, torch.stack([(gpos * (1 - frac)).sum(1), (gpos * frac).sum(1)], 1), None, None


def segment_align(feats, segments, bins=2, samples=2):
    """1-D RoIAlign. feats (C, T), segments (S, 2) start and end in frames -> (S, C, bins)

    Samples beyond the ends take the value of the end frame.
    """
    return _SegmentAlign.apply(feats, segments, bins, samples)
