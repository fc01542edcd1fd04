import torch


class _DirichletKL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        a0, b0 = a.sum(-1, keepdim=True), b.sum(-1, keepdim=True)
        mean_log = torch.digamma(a) - torch.digamma(a0)
        parts = torch.lgamma(b) - torch.lgamma(a) + (a - b) * mean_log
        return parts.sum(-1) + (torch.lgamma(a0) - torch.lgamma(b0)).squeeze(-1)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        a0, b0 = a.sum(-1, keepdim=True), b.sum(-1, keepdim=True)
        g = g.unsqueeze(-1)
        ga = gb = None
        if ctx.needs_input_grad[0]:
            spread = torch.polygamma(1, a0) * (a - b).sum(-1, keepdim=True)
            ga = g * ((a - b) * torch.polygamma(1, a) - spread)
        if all(ctx.needs_input_grad):
            gb = g * (torch.digamma(b) - torch.digamma(b0) - torch.digamma(a) + torch.digamma(a0))
        return ga, gb


def dirichlet_kl(alpha, beta):
    return _DirichletKL.apply(alpha, beta)
