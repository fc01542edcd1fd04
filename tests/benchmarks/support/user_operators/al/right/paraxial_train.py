import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _Trace(torch.autograd.Function):
    """Paraxial ray trace through thin lenses; rays (N, 2) are height and angle."""

    @staticmethod
    def forward(ctx, rays, focal, gap):
        height, angle = rays.unbind(1)
        trace = []
        for f, d in zip(focal, gap):
            bent = angle - height / f
            trace.append((height, bent))
            height, angle = height + d * bent, bent
        ctx.trace = trace
        ctx.save_for_backward(focal, gap)
        return torch.stack([height, angle], 1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        focal, gap = ctx.saved_tensors
        g_height, g_angle = grad.unbind(1)
        g_focal, g_gap = torch.zeros_like(focal), torch.zeros_like(gap)
        for s in range(len(focal) - 1, -1, -1):
            height, bent = ctx.trace[s]
            g_gap[s] = (g_height * bent).sum()
            g_angle = g_angle + gap[s] * g_height
            g_focal[s] = (g_angle * height).sum() / focal[s] ** 2
            g_height = g_height - g_angle / focal[s]
        return torch.stack([g_height, g_angle], 1), g_focal, g_gap


class ParaxialTrain(nn.Module):
    def __init__(self, focal, gap):
        super().__init__()
        self.focal = nn.Parameter(torch.tensor(focal))
        self.gap = nn.Parameter(torch.tensor(gap))

    def forward(self, rays):
        return _Trace.apply(rays, self.focal, self.gap)
