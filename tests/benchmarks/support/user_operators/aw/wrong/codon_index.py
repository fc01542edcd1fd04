import torch


class _CAI(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weights, codons):
        keep = codons >= 0
        logw = weights.log()[codons.clamp(min=0)] * keep
        cai = torch.exp(logw.sum(1) / keep.sum(1).clamp(min=1))
        ctx.save_for_backward(weights, codons)
        return cai

    @staticmethod
    def backward(ctx, grad):
        weights, codons = ctx.saved_tensors
        keep = codons >= 0
        n = keep.sum(1).clamp(min=1)
        w = weights[codons.clamp(min=0)]
        cai = torch.exp((w.log() * keep).sum(1) / n)
        per_codon = (grad * cai / n)[:, None] * keep / w
        gw = torch.zeros_like(weights).index_put((codons[keep],), per_codon[keep], accumulate=False)
        return gw, None


def codon_adaptation_index(weights, codons):
    """Geometric mean of the relative adaptiveness of a gene's codons.

    weights (64,) or fewer, positive; codons (B, L) long, -1 pads. Returns (B,).
    """
    return _CAI.apply(weights, codons)
