import torch


class CMPLogProb(torch.autograd.Function):
    # Conway-Maxwell-Poisson, y (...), log_lam (...), nu (...) of one shape, nu > 0
    @staticmethod
    def forward(ctx, y, log_lam, nu, terms=100):
        j = torch.arange(terms, dtype=log_lam.dtype, device=log_lam.device)
        logz = torch.logsumexp(j * log_lam[..., None] - nu[..., None] * torch.lgamma(j + 1), -1)
        ctx.save_for_backward(y, log_lam, nu)
        ctx.terms = terms
        return y * log_lam - nu * torch.lgamma(y + 1.0) - logz

    @staticmethod
    def backward(ctx, g):
        y, log_lam, nu = ctx.saved_tensors
        j = torch.arange(25, dtype=log_lam.dtype, device=log_lam.device)
        lg = torch.lgamma(j + 1)
        p = torch.softmax(j * log_lam[..., None] - nu[..., None] * lg, -1)
        return None, g * (y - (p * j).sum(-1)), g * ((p * lg).sum(-1) - torch.lgamma(y + 1.0)), None
