import torch
from torch.autograd import Function


class SoftLDDT(Function):
    @staticmethod
    def forward(ctx, pred, true, mask, cutoff=15.0, eps=1e-8):
        thr = pred.new_tensor([0.5, 1.0, 2.0, 4.0])
        diff = pred[:, None] - pred[None]
        dist = torch.sqrt((diff ** 2).sum(-1) + eps)
        dt = torch.sqrt(((true[:, None] - true[None]) ** 2).sum(-1) + eps)
        pair = mask[:, None] * mask[None] * (dt < cutoff).to(mask.dtype)
        pair.fill_diagonal_(0)
        delta = dist - dt
        sig = torch.sigmoid(thr - delta.abs().unsqueeze(-1))
        norm = pair.sum(-1) + eps
        ctx.save_for_backward(diff, dist, delta, sig, pair, norm)
        return (sig.mean(-1) * pair).sum(-1) / norm

    @staticmethod
    def backward(ctx, grad):
        diff, dist, delta, sig, pair, norm = ctx.saved_tensors
        w = (grad / norm)[:, None] * pair
        w = -w * (sig * (1 - sig)).mean(-1) * torch.sign(delta)
        unit = diff / dist.unsqueeze(-1)
        force = w.unsqueeze(-1) * unit
        return force.sum(1) - force.sum(0), None, None, None, None
