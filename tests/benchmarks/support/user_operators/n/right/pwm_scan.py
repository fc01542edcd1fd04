import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class PWMScan(torch.autograd.Function):
    """Best match of each position weight matrix along a sequence.

    seq: (B, 4, L) in the order A, C, G, T; pwm: (K, 4, W)
    both_strands: score the reverse complement too
    Returns score (B, K) and the place of the match (B, K), with L - W + 1 added on the reverse
    strand. Of equal scores the first place counts.
    """

    @staticmethod
    def forward(ctx, seq, pwm, both_strands=True):
        hits = F.conv1d(seq, pwm)
        if both_strands:
            hits = torch.cat((hits, F.conv1d(seq, pwm.flip(1, 2))), -1)
        score, place = hits.max(-1)
        ctx.save_for_backward(seq, pwm, place)
        ctx.mark_non_differentiable(place)
        return score, place

    @staticmethod
    @once_differentiable
    def backward(ctx, grad, _):
        seq, pwm, place = ctx.saved_tensors
        B, _, L = seq.shape
        K, _, W = pwm.shape
        n = L - W + 1
        reverse = place >= n
        start = place - n * reverse
        cols = start.unsqueeze(-1) + torch.arange(W, device=seq.device)          # (B, K, W)
        cols = cols.unsqueeze(2).expand(B, K, 4, W)
        window = seq.unsqueeze(1).expand(B, K, 4, L).gather(3, cols)
        rev = reverse.view(B, K, 1, 1)
        g = grad.view(B, K, 1, 1)
        g_seq = g_pwm = None
        if ctx.needs_input_grad[1]:
            g_pwm = (g * torch.where(rev, window.flip(2, 3), window)).sum(0)
        if ctx.needs_input_grad[0]:
            both = torch.where(rev, pwm.flip(1, 2), pwm)
            g_seq = seq.new_zeros(B, K, 4, L).scatter_add_(3, cols, g * both).sum(1)
        return g_seq, g_pwm, None
