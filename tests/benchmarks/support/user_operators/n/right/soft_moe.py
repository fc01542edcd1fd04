import torch
from torch import nn


class _SoftRoute(torch.autograd.Function):
    # x (B, N, D), phi (D, S), weight (S, D, F): slots mix tokens, one linear expert per slot

    @staticmethod
    def forward(ctx, x, phi, weight):
        logits = x @ phi
        dispatch = logits.softmax(dim=1)
        combine = logits.softmax(dim=2)
        slots = dispatch.transpose(1, 2) @ x
        y = torch.einsum("bsd,sdf->bsf", slots, weight)
        ctx.save_for_backward(x, phi, weight, dispatch, combine, slots, y)
        return combine @ y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        x, phi, weight, dispatch, combine, slots, y = ctx.saved_tensors
        g_combine = grad @ y.transpose(1, 2)
        g_y = combine.transpose(1, 2) @ grad
        g_weight = torch.einsum("bsd,bsf->sdf", slots, g_y)
        g_slots = torch.einsum("bsf,sdf->bsd", g_y, weight)
        g_dispatch = x @ g_slots.transpose(1, 2)
        g_x = dispatch @ g_slots
        g_logits = combine * (g_combine - (g_combine * combine).sum(2, keepdim=True))
        g_logits = g_logits + dispatch * (g_dispatch - (g_dispatch * dispatch).sum(1, keepdim=True))
        g_phi = torch.einsum("bnd,bns->ds", x, g_logits)
        return g_x + g_logits @ phi.t(), g_phi, g_weight


class SoftMoE(nn.Module):
    """Soft mixture of linear experts, one slot each: (B, N, D) -> (B, N, F)."""

    def __init__(self, dim, num_experts, out_dim=None):
        super().__init__()
        out_dim = dim if out_dim is None else out_dim
        self.phi = nn.Parameter(torch.randn(dim, num_experts) * dim ** -0.5)
        self.weight = nn.Parameter(torch.randn(num_experts, dim, out_dim) * dim ** -0.5)

    def forward(self, x):
        return _SoftRoute.apply(x, self.phi, self.weight)
