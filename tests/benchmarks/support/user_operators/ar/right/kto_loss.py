import torch
from torch.autograd import Function


class KTOLoss(Function):
    """KTO. policy_logps, ref_logps (B,), label (B,) bool (True = desirable), kl a scalar
    estimated on mismatched pairs, without gradient."""

    @staticmethod
    def forward(policy_logps, ref_logps, label, kl, beta=0.1, w_pos=1.0, w_neg=1.0):
        ratio = policy_logps - ref_logps
        kl = kl.detach().clamp(min=0)
        pos = w_pos * (1 - torch.sigmoid(beta * (ratio - kl)))
        neg = w_neg * (1 - torch.sigmoid(beta * (kl - ratio)))
        return torch.where(label, pos, neg).mean()

    @staticmethod
    def setup_context(ctx, inputs, output):
        policy_logps, ref_logps, label, kl, *opts = inputs
        ctx.save_for_backward(policy_logps, ref_logps, label, kl.detach())
        ctx.opts = tuple(opts) + (0.1, 1.0, 1.0)[len(opts):]
        ctx.n = len(inputs)

    @staticmethod
    def backward(ctx, g):
        policy_logps, ref_logps, label, kl = ctx.saved_tensors
        beta, w_pos, w_neg = ctx.opts
        s = torch.sigmoid(beta * (policy_logps - ref_logps - kl.clamp(min=0)))
        slope = beta * s * (1 - s)
        d = torch.where(label, -w_pos * slope, w_neg * slope) * (g / label.numel())
        return (d, -d) + (None,) * (ctx.n - 2)
