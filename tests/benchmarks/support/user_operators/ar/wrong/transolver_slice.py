import torch
from torch import nn


class SliceTokens(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, logits, temperature):
        w = torch.softmax(logits / temperature, -1)
        norm = w.sum(1).unsqueeze(-1) + 1e-5
        ctx.save_for_backward(x, logits, temperature)
        return torch.einsum("bng,bnc->bgc", w, x) / norm

    @staticmethod
    def backward(ctx, grad):
        x, logits, temperature = ctx.saved_tensors
        w = torch.softmax(logits / temperature, -1)
        norm = w.sum(1).unsqueeze(-1) + 1e-5
        tokens = torch.einsum("bng,bnc->bgc", w, x) / norm
        grad = grad / norm
        dx = torch.einsum("bng,bgc->bnc", w, grad)
        dw = torch.einsum("bnc,bgc->bng", x, grad)
        dl = w * (dw - (dw * w).sum(-1, keepdim=True)) / temperature
        dt = -(dl * logits).sum() / temperature
        return dx, dl, dt


class PhysicsSlice(nn.Module):
    """Transolver: mesh points (B, N, C) -> slice tokens (B, G, C)"""

    def __init__(self, dim, slices):
        super().__init__()
        self.in_project_slice = nn.Linear(dim, slices)
        self.temperature = nn.Parameter(torch.ones(1) * 0.5)

    def forward(self, x):
        return SliceTokens.apply(x, self.in_project_slice(x), self.temperature)
