from typing import Optional

import torch
from torch import nn
from torch.autograd.function import once_differentiable


class FusedLinearCrossEntropyFunction(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, weight, target, bias=None, ignore_index=-100, label_smoothing=0.0, num_chunks=2,
                reduction="mean"):
        # x: [N, H], weight: [V, H], target: [N], bias: [V]
        N, V = x.shape[0], weight.shape[0]
        keep = target != ignore_index
        total = keep.sum().clamp(min=1) if reduction == "mean" else 1
        dx, dw = torch.zeros_like(x), torch.zeros_like(weight)
        db = torch.zeros_like(bias) if bias is not None else None
        loss = x.new_zeros(())
        size = (N + num_chunks - 1) // num_chunks
        for lo in range(0, N, size):
            xc, tc, kc = x[lo : lo + size], target[lo : lo + size], keep[lo : lo + size]
            logits = xc @ weight.mT
            if bias is not None:
                logits = logits + bias
            logp = logits.log_softmax(-1)
            goal = torch.full_like(logp, label_smoothing / V)
            goal.scatter_add_(1, tc.masked_fill(~kc, 0)[:, None], goal.new_full((len(tc), 1), 1 - label_smoothing))
            loss = loss - ((goal * logp).sum(-1) * kc).sum() / total
            dlogits = (logp.exp() - goal) * kc[:, None] / total
            dx[lo : lo + size] = dlogits @ weight
            dw += dlogits.mT @ xc
            if db is not None:
                db += dlogits.sum(0)
        ctx.grads = dx, dw, db
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, do):
        dx, dw, db = (None if g is None else g.mul(do) for g in ctx.grads)
        return dx, dw, None, db, None, None, None, None


class FusedLinearCrossEntropyLoss(nn.Module):
    """
    Args:
        hidden_size, vocab_size: shape of the head
        ignore_index: labels that do not count
        label_smoothing: in [0, 1)
        num_chunks: chunks to split the tokens in
        reduction: "mean" over the labels that count, or "sum"
        bias: whether the head has a bias

    The gradients are computed along with the loss, so that the logits need not be kept.
    """

    def __init__(self, hidden_size: int, vocab_size: int, ignore_index: int = -100, label_smoothing: float = 0.0,
                 num_chunks: int = 2, reduction: str = "mean", bias: Optional[bool] = True):
        super().__init__()
        assert reduction in ("mean", "sum"), f"reduction: {reduction} is not supported"
        self.weight = nn.Parameter(torch.randn(vocab_size, hidden_size))
        self.bias = nn.Parameter(torch.zeros(vocab_size)) if bias else None
        self.conf = ignore_index, label_smoothing, num_chunks, reduction

    def forward(self, x, target):
        """x: [batch, seq, hidden] or [tokens, hidden]; target: x.shape[:-1]"""
        return FusedLinearCrossEntropyFunction.apply(
            x.reshape(-1, x.shape[-1]), self.weight, target.reshape(-1), self.bias, *self.conf
        )
