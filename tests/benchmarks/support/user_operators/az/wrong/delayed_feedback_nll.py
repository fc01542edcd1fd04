import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


class _DelayedFeedbackNLL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logit, log_rate, converted, delay, elapsed):
        p = torch.sigmoid(logit)
        rate = log_rate.exp()
        hit = -(logsigmoid(logit) + log_rate - rate * delay)
        miss = -torch.log1p(p * torch.expm1(-rate * elapsed))
        ctx.save_for_backward(logit, log_rate, converted, delay, elapsed)
        return torch.where(converted, hit, miss).mean()

    @staticmethod
    def backward(ctx, grad):
        logit, log_rate, converted, delay, elapsed = ctx.saved_tensors
        p = torch.sigmoid(logit)
        rate = log_rate.exp()
        arrived = -torch.expm1(-rate * elapsed)
        survive = 1 - p * arrived
        d_logit = torch.where(converted, p - 1, p * (1 - p) * arrived / survive)
        d_rate = torch.where(
            converted,
            rate * delay - 1,
            p * elapsed * torch.exp(-rate * elapsed) / survive,
        )
        scale = grad / logit.numel()
        return scale * d_logit, scale * d_rate, None, None, None


def delayed_feedback_nll(logit: Tensor, log_rate: Tensor, converted: Tensor, delay: Tensor, elapsed: Tensor) -> Tensor:
    """Delayed feedback model for conversions: a conversion happens with probability
    sigmoid(logit) and arrives after an exponential delay of rate exp(log_rate).

    All arguments have shape (N,). ``converted`` is bool, ``delay`` is read where converted,
    ``elapsed`` where not (both are labels, not differentiated). Returns the mean NLL.
    """
    if converted.dtype != torch.bool:
        raise ValueError("converted must be a bool tensor")
    if not logit.shape == log_rate.shape == converted.shape == delay.shape == elapsed.shape:
        raise ValueError("all arguments must have the same shape")
    return _DelayedFeedbackNLL.apply(logit, log_rate, converted, delay, elapsed)
