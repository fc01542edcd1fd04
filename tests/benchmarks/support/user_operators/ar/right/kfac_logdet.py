import torch
from torch.autograd.function import once_differentiable


class _LogDet(torch.autograd.Function):
    @staticmethod
    def forward(ctx, prior_prec, n_data, *factors):
        total = prior_prec.new_zeros(())
        saved = []
        for A, G in zip(factors[::2], factors[1::2]):
            la, qa = torch.linalg.eigh(0.5 * (A + A.mT))
            lg, qg = torch.linalg.eigh(0.5 * (G + G.mT))
            saved += [la, qa, lg, qg]
            total = total + torch.log(n_data * torch.outer(lg, la) + prior_prec).sum()
        ctx.n_data = n_data
        ctx.save_for_backward(prior_prec, *saved)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        prior_prec, *saved = ctx.saved_tensors
        d_prior = torch.zeros_like(prior_prec)
        out = []
        for la, qa, lg, qg in zip(*[iter(saved)] * 4):
            inv = grad / (ctx.n_data * torch.outer(lg, la) + prior_prec)
            d_prior += inv.sum()
            da, dg = ctx.n_data * (lg @ inv), ctx.n_data * (inv @ la)
            out += [(qa * da) @ qa.mT, (qg * dg) @ qg.mT]
        return (d_prior, None, *out)


def kfac_logdet(factors, prior_prec, n_data=1):
    """log det of the Kronecker-factored posterior precision, sum over layers.

    factors: list of (A, G) pairs, both symmetric positive semidefinite
    prior_prec: 0-dim tensor
    """
    return _LogDet.apply(prior_prec, n_data, *[m for pair in factors for m in pair])
