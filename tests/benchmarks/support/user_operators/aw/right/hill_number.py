import torch


class HillNumber(torch.autograd.Function):
    """Effective number of species of order q from positive abundances (..., S) -> (...)."""

    @staticmethod
    def forward(ctx, abundance, q=1.0):
        ctx.save_for_backward(abundance)
        ctx.q = q
        p = abundance / abundance.sum(-1, keepdim=True)
        if q == 1:
            return torch.exp(-(p * p.log()).sum(-1))
        return (p ** q).sum(-1) ** (1 / (1 - q))

    @staticmethod
    def backward(ctx, grad):
        abundance, = ctx.saved_tensors
        q = ctx.q
        total = abundance.sum(-1, keepdim=True)
        p = abundance / total
        if q == 1:
            d = torch.exp(-(p * p.log()).sum(-1, keepdim=True))
            gp = -d * p.log()
        else:
            s = (p ** q).sum(-1, keepdim=True)
            gp = q / (1 - q) * p ** (q - 1) * s ** (q / (1 - q))
        gp = grad.unsqueeze(-1) * gp
        return (gp - (gp * p).sum(-1, keepdim=True)) / total, None
