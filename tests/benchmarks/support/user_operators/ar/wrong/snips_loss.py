import torch


class SNIPS(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logp, logp_logging, reward):
        w = torch.exp(logp - logp_logging)
        loss = -(w * reward).sum() / w.sum()
        ctx.save_for_backward(w, reward)
        return loss

    @staticmethod
    def backward(ctx, g):
        w, reward = ctx.saved_tensors
        p = w / w.sum()
        d = -g * p * (reward - (p * reward).sum())
        return d, -d, -g * p
