import torch


class NegativeBinomialNLL(torch.autograd.Function):
    """Negative log-likelihood of gene counts, mean/inverse-dispersion form.

    counts: (cells, genes), observed; mu: (cells, genes) > 0; theta: (genes,) or (cells, genes), > 0.
    Returns one value per cell.
    """

    @staticmethod
    def forward(ctx, counts, mu, theta, eps=1e-8):
        if ctx.needs_input_grad[0]:
            raise RuntimeError("counts are observations and have no gradient")
        x = counts.to(mu.dtype)
        log_tm = torch.log(theta + mu + eps)
        ll = (theta * (torch.log(theta + eps) - log_tm)
              + x * (torch.log(mu + eps) - log_tm)
              + torch.lgamma(x + theta) - torch.lgamma(theta) - torch.lgamma(x + 1))
        ctx.save_for_backward(x, mu, theta)
        ctx.eps = eps
        return -ll.sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        x, mu, theta = ctx.saved_tensors
        eps = ctx.eps
        g = -grad_output.unsqueeze(-1)
        tm = theta + mu + eps
        grad_mu = g * (x / (mu + eps) - (theta + x) / tm)
        grad_theta = g * (torch.log(theta + eps) - torch.log(tm) + theta / (theta + eps) - (theta + x) / tm
                          + torch.digamma(x + theta) - torch.digamma(theta))
        if theta.dim() == 1:
            grad_theta = grad_theta.mean(0)
        return None, grad_mu, grad_theta, None
