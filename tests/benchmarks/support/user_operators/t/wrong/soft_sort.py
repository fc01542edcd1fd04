import torch


class SoftSort(torch.autograd.Function):
    """SoftSort (Prillo & Eisenschlos 2020): s (n,) -> permutation matrix (n, n), descending."""

    @staticmethod
    def forward(ctx, s, tau=1.0):
        ctx.tau = tau
        ctx.save_for_backward(s)
        top = s.sort(descending=True).values
        return (-(top[:, None] - s[None, :]).abs() / tau).softmax(-1)

    @staticmethod
    def backward(ctx, grad):
        (s,) = ctx.saved_tensors
        top, perm = s.sort(descending=True)
        diff = top[:, None] - s[None, :]
        P = (-diff.abs() / ctx.tau).softmax(-1)
        d = P * (grad - (grad * P).sum(-1, keepdim=True)) * -diff.sign() / ctx.tau
        rows, cols = d.sum(1), -d.sum(0)
        return cols + rows[perm], None
