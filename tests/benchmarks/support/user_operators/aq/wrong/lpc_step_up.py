import torch
from torch.autograd.function import once_differentiable


class ReflectionToLPC(torch.autograd.Function):
    """Step-up recursion: reflection coefficients (B, p) -> predictor coefficients a_1..a_p (B, p)."""

    @staticmethod
    def forward(ctx, k):
        stages = []
        a = k[:, :0]
        for i in range(k.shape[1]):
            stages.append(a)
            ki = k[:, i:i + 1]
            a = torch.cat([a + ki * a.flip(1), ki], 1)
        ctx.save_for_backward(k, *stages)
        return a

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_a):
        k, *stages = ctx.saved_tensors
        grad_k = torch.zeros_like(k)
        ga = grad_a
        for i in reversed(range(k.shape[1])):
            prev = stages[i]
            head = ga[:, :i]
            grad_k[:, i] = ga[:, i] + (head * prev.flip(1)).sum(1)
            head += k[:, i:i + 1] * head.flip(1)
        return grad_k
