import torch


class WeibullAFTLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, mu, sigma, log_time, observed):
        # mu, log_time, observed: (N,); sigma: scalar tensor
        z = (log_time - mu) / sigma
        ctx.save_for_backward(mu, sigma, log_time, observed)
        d = observed.to(mu.dtype)
        return (z.exp() - d * (z - sigma.log())).sum()

    @staticmethod
    def backward(ctx, grad_output):
        mu, sigma, log_time, observed = ctx.saved_tensors
        d = observed.to(mu.dtype)
        z = (log_time - mu) / sigma
        dz = z.exp() - d
        grad_mu = -grad_output * dz / sigma
        grad_sigma = (grad_output * ((1 - dz * z) / sigma).sum()).reshape(sigma.shape)
        grad_t = grad_output * dz / sigma if ctx.needs_input_grad[2] else None
        return grad_mu, grad_sigma, grad_t, None
