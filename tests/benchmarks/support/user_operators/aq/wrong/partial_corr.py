import torch


class PartialCorrelation(torch.autograd.Function):
    """precision (d, d) -> partial correlations, -P_ij / sqrt(P_ii P_jj), ones on the diagonal"""

    @staticmethod
    def forward(ctx, prec):
        ctx.save_for_backward(prec)
        s = prec.diagonal().rsqrt()
        rho = -prec * s[:, None] * s[None, :]
        return rho - torch.diag(rho.diagonal()) + torch.eye(len(s), dtype=prec.dtype, device=prec.device)

    @staticmethod
    def backward(ctx, grad):
        prec, = ctx.saved_tensors
        diag = prec.diagonal()
        s = diag.rsqrt()
        off = 1 - torch.eye(len(s), dtype=prec.dtype, device=prec.device)
        g = grad * off
        q = g * -prec * s[:, None] * s[None, :]
        return -g * s[:, None] * s[None, :] - torch.diag(q.sum(1) / diag)
