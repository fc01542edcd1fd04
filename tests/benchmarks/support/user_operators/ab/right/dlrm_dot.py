import torch


class DotInteraction(torch.autograd.Function):
    """Pairwise dot products of the feature vectors (batch, f, d), as in DLRM.

    itself=True keeps every feature's product with itself. Output (batch, pairs).
    """

    @staticmethod
    def forward(ctx, feats, itself=False):
        i, j = torch.tril_indices(feats.shape[1], feats.shape[1], offset=0 if itself else -1, device=feats.device)
        ctx.save_for_backward(feats, i, j)
        return torch.bmm(feats, feats.transpose(1, 2))[:, i, j]

    @staticmethod
    def backward(ctx, g):
        feats, i, j = ctx.saved_tensors
        b, f, _ = feats.shape
        full = g.new_zeros(b, f, f)
        rows = torch.arange(b, device=g.device)[:, None]
        full = full.index_put((rows, i, j), g)
        sym = full + full.transpose(1, 2)
        return torch.bmm(sym, feats), None
