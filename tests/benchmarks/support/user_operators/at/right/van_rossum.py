import torch
from torch.autograd import Function


class VanRossum(Function):
    """van Rossum distance of spike trains with an exponential kernel, summed over neurons.
    spikes, target: (T, B, N)"""

    @staticmethod
    def forward(ctx, spikes, target, decay=0.8):
        ctx.decay = decay
        ctx.save_for_backward(spikes, target)
        trace = torch.zeros_like(spikes[0])
        dist = 0
        for d in spikes - target:
            trace = decay * trace + d
            dist = dist + trace.pow(2).sum(-1)
        return 0.5 * (1 - decay) * dist

    @staticmethod
    def backward(ctx, grad_output):
        spikes, target = ctx.saved_tensors
        steps = torch.arange(spikes.size(0), device=spikes.device)
        lag = steps[:, None] - steps
        kernel = torch.full_like(lag, ctx.decay, dtype=spikes.dtype) ** lag.clamp(min=0) * (lag >= 0)
        kernel = kernel.to(spikes.dtype)
        trace = torch.einsum("ts,sbn->tbn", kernel, spikes - target)
        g = torch.einsum("ts,tbn->sbn", kernel, trace) * grad_output.view(1, -1, 1) * (1 - ctx.decay)
        return g, -g, None
