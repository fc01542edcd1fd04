import math
import torch
from torch.autograd.function import once_differentiable

LOG = math.log(10.0) / 400.0


class EloSeason(torch.autograd.Function):
    # ratings (P,), games (M, 2) long, score of the first player (M,) in [0, 1] -> final ratings (P,), expected (M,)
    @staticmethod
    def forward(ctx, ratings, games, score, k):
        R = ratings.clone()
        exp = torch.empty_like(score)
        for m, (i, j) in enumerate(games.tolist()):
            exp[m] = torch.sigmoid(LOG * (R[i] - R[j]))
            step = k * (score[m] - exp[m])
            R[i] += step
            R[j] -= step
        ctx.save_for_backward(games, exp)
        ctx.k = k
        return R, exp

    @staticmethod
    @once_differentiable
    def backward(ctx, gR, gE):
        games, exp = ctx.saved_tensors
        lam = gR.clone()
        g_score = torch.zeros_like(exp)
        for m in range(len(games) - 1, -1, -1):
            i, j = games[m].tolist()
            g_step = lam[i] - lam[j]
            g_score[m] = ctx.k * g_step
            ge = (gE[m] - ctx.k * g_step) * LOG * exp[m] * (1 - exp[m])
            lam[i] += ge
            lam[j] -= ge
        return lam, None, g_score, None
