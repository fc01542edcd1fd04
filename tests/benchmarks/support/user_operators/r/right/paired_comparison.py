import math

import torch
import torch.nn.functional as F
from torch.autograd import Function


class _PairedComparison(Function):
    """Negative log likelihood of comparisons between items with real valued strengths.

    strength (n,), first (M,) int64, second (M,) int64, wins (M,) int64 and games (M,) int64:
    how often `first` won.  The subclasses say how differences become log probabilities.
    """

    log_prob = None
    dlog_prob = None

    @classmethod
    def compute(cls, ctx, strength, first, second, wins, games):
        d = strength[first] - strength[second]
        ctx.save_for_backward(strength, first, second, wins, games)
        return -(wins * cls.log_prob(d) + (games - wins) * cls.log_prob(-d)).sum()

    @classmethod
    def pull_back(cls, ctx, grad):
        strength, first, second, wins, games = ctx.saved_tensors
        d = strength[first] - strength[second]
        gd = -grad * (wins * cls.dlog_prob(d) - (games - wins) * cls.dlog_prob(-d))
        g = torch.zeros_like(strength).index_add(0, first, gd).index_add(0, second, -gd)
        return g, None, None, None, None


class BradleyTerry(_PairedComparison):
    log_prob = staticmethod(F.logsigmoid)
    dlog_prob = staticmethod(lambda d: torch.sigmoid(-d))

    @staticmethod
    def forward(ctx, *args):
        return BradleyTerry.compute(ctx, *args)

    @staticmethod
    def backward(ctx, grad):
        return BradleyTerry.pull_back(ctx, grad)


class Thurstone(_PairedComparison):
    log_prob = staticmethod(torch.special.log_ndtr)
    dlog_prob = staticmethod(lambda d: torch.exp(-d * d / 2 - torch.special.log_ndtr(d)) / math.sqrt(2 * math.pi))

    @staticmethod
    def forward(ctx, strength, first, second, wins, games):
        return Thurstone.compute(ctx, strength, first, second, wins, games)

    @staticmethod
    def backward(ctx, grad):
        return Thurstone.pull_back(ctx, grad)
