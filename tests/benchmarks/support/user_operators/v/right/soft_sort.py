import torch


class SoftSort(torch.autograd.Function):
    @staticmethod
    def forward(ctx, s, tau):
        top, perm = s.sort(descending=True)
        ctx.tau = tau
        ctx.save_for_backward(s, perm)
        return torch.softmax(-(top[:, None] - s[None, :]).abs() / tau, 1)

    @staticmethod
    def backward(ctx, G):
        s, perm = ctx.saved_tensors
        diff = s[perm][:, None] - s[None, :]
        P = torch.softmax(-diff.abs() / ctx.tau, 1)
        D = P * (G - (G * P).sum(1, keepdim=True)) / ctx.tau * diff.sign()
        gs = D.sum(0)
        return gs.index_add(0, perm, -D.sum(1)), None
