import torch
import torch.nn.functional as F
from torch import Tensor


class ZeroInflatedPoissonNLL(torch.autograd.Function):
    """NLL of counts under a zero-inflated Poisson.

    log_rate:   (N, G) log of the Poisson mean
    gate_logit: (N, G) logit of the structural-zero probability
    counts:     (N, G) integer counts
    """

    @staticmethod
    def forward(ctx, log_rate: Tensor, gate_logit: Tensor, counts: Tensor) -> Tensor:
        ctx.save_for_backward(log_rate, gate_logit, counts)
        rate = log_rate.exp()
        y = counts.to(log_rate.dtype)
        ll_zero = torch.logaddexp(gate_logit, -rate) - F.softplus(gate_logit)
        ll_pos = -F.softplus(gate_logit) + y * log_rate - rate - torch.lgamma(y + 1)
        return -torch.where(counts == 0, ll_zero, ll_pos)

    @staticmethod
    def backward(ctx, grad_output: Tensor):
        log_rate, gate_logit, counts = ctx.saved_tensors
        rate = log_rate.exp()
        y = counts.to(log_rate.dtype)
        pi = torch.sigmoid(gate_logit)
        # posterior probability that an observed zero is structural
        w = torch.sigmoid(gate_logit + rate)
        is_zero = counts == 0
        d_rate = torch.where(is_zero, -(1 - w) * rate, y - rate)
        d_gate = torch.where(is_zero, w - pi, -pi)
        return -grad_output * d_rate, -grad_output * d_gate, None
