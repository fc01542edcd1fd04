import itertools

import torch
from torch.autograd.function import once_differentiable


class PermutationInvariantMSE(torch.autograd.Function):
    """Utterance-level PIT: the smallest mean squared error over all speaker permutations.

    est, ref: (B, S, T)
    Returns loss (B,) and the permutation (B, S): est[b, perm[b, s]] goes with ref[b, s].
    Of equal permutations the first in lexicographic order is taken.
    """

    @staticmethod
    def forward(ctx, est, ref):
        S = est.size(1)
        pair = (est.unsqueeze(1) - ref.unsqueeze(2)).pow(2).mean(-1)      # (B, ref, est)
        perms = torch.tensor(list(itertools.permutations(range(S))), device=est.device)
        cost = pair[:, torch.arange(S, device=est.device), perms].mean(-1)
        loss, best = cost.min(dim=1)
        perm = perms[best]
        ctx.save_for_backward(est, ref, perm)
        ctx.mark_non_differentiable(perm)
        return loss, perm

    @staticmethod
    @once_differentiable
    def backward(ctx, g_loss, _g_perm):
        est, ref, perm = ctx.saved_tensors
        idx = perm.unsqueeze(-1).expand_as(ref)
        err = est.gather(1, idx) - ref
        g = 2 * err * (g_loss / (err.size(1) * err.size(2))).view(-1, 1, 1)
        return g.gather(1, idx), -g
