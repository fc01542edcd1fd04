"""DLRM style feature interaction on a variable number of feature vectors."""
import torch


class DotInteraction(torch.autograd.Function):
    """DotInteraction.apply(keep_diag, dense, *sparse) -> (B, D + P)

    All features are (B, D). P counts the pairs i > j of the 1 + len(sparse) features, and
    i == j as well where keep_diag is set.
    """

    @staticmethod
    def forward(ctx, keep_diag, *features):
        stack = torch.stack(features, 1)
        n = stack.size(1)
        i, j = torch.tril_indices(n, n, 0 if keep_diag else -1, device=stack.device)
        gram = stack @ stack.transpose(1, 2)
        ctx.keep_diag = bool(keep_diag)
        ctx.save_for_backward(*features)
        return torch.cat([features[0], gram[:, i, j]], 1)

    @staticmethod
    def backward(ctx, grad):
        features = ctx.saved_tensors
        stack = torch.stack(features, 1)
        n, d = stack.shape[1:]
        i, j = torch.tril_indices(n, n, 0 if ctx.keep_diag else -1, device=stack.device)
        g_pairs = grad[:, d:]
        lower = g_pairs.new_zeros(grad.size(0), n * n).index_add(1, i * n + j, g_pairs)
        lower = lower.view(-1, n, n)
        g_stack = (lower + lower.tril(-1).transpose(1, 2)) @ stack
        out = list(g_stack.unbind(1))
        out[0] = out[0] + grad[:, :d]
        return (None, *out)
