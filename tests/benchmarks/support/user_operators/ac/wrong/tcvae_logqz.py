import math
import torch


def _pairwise(z, mu, logvar):
    # [i, j, d] = log N(z_i | mu_j, var_j)
    d = z[:, None] - mu[None]
    return -0.5 * (d ** 2 * torch.exp(-logvar)[None] + logvar[None] + math.log(2 * math.pi))


class MinibatchLogQZ(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, mu, logvar, dataset_size):
        ctx.save_for_backward(z, mu, logvar)
        lp = _pairwise(z, mu, logvar)
        norm = math.log(z.shape[0] * dataset_size)
        log_qz = torch.logsumexp(lp.sum(2), dim=1) - norm
        log_prod = (torch.logsumexp(lp, dim=1) - norm).sum(1)
        return log_qz, log_prod

    @staticmethod
    def backward(ctx, g_qz, g_prod):
        z, mu, logvar = ctx.saved_tensors
        lp = _pairwise(z, mu, logvar)
        joint = torch.softmax(lp.sum(2), dim=1)
        marg = torch.softmax(lp, dim=1)
        g_lp = g_qz[:, None, None] * joint[:, :, None] + g_prod[:, None, None] * marg
        prec = torch.exp(-logvar)
        d = z[:, None] - mu[None]
        t = g_lp * d * prec
        g_logvar = 0.5 * (g_lp * (d ** 2 * prec - 1)).sum(0)
        return -t.sum(1), t.sum(1), g_logvar, None
