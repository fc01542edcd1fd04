import torch


class FastFusion(torch.autograd.Function):
    """EfficientDet's fast normalised fusion: FastFusion.apply(weights, feature_1, ..., feature_n)."""

    @staticmethod
    def forward(ctx, w, *feats):
        ctx.save_for_backward(w, *feats)
        r = torch.relu(w)
        n = r / (r.sum() + 1e-4)
        return sum(n[i] * f for i, f in enumerate(feats))

    @staticmethod
    def backward(ctx, g):
        w, *feats = ctx.saved_tensors
        r = torch.relu(w)
        total = r.sum() + 1e-4
        n = r / total
        dot = torch.stack([(g * f).sum() for f in feats])
        gw = (dot - (dot * n).sum()) / total
        return (gw, *[g * n[i] for i in range(len(feats))])
