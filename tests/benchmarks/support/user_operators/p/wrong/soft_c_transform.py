import torch


class SoftCTransform(torch.autograd.Function):
    """f_i = -eps * log sum_j b_j exp((g_j - C_ij) / eps)

    One half step of log-domain Sinkhorn; g (M,), cost (N, M), log_b (M,).
    """

    @staticmethod
    def forward(ctx, g, cost, log_b, eps=1.0):
        f = -eps * torch.logsumexp((g - cost) / eps + log_b, dim=1)
        ctx.save_for_backward(g, cost, log_b)
        ctx.eps = eps
        return f

    @staticmethod
    def backward(ctx, grad_f):
        g, cost, log_b = ctx.saved_tensors
        plan = torch.softmax((g - cost) / ctx.eps + log_b, dim=1)
        mass = grad_f[:, None] * plan
        return -mass.sum(0), mass, -mass.sum(0), None
