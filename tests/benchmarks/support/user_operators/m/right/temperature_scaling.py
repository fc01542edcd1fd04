import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _ScaledNLL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, log_t, labels, ignore_index):
        valid = labels != ignore_index
        safe = labels.masked_fill(~valid, 0)
        logp = torch.log_softmax(logits * torch.exp(-log_t), dim=1)
        n = valid.sum().clamp(min=1)
        ctx.save_for_backward(logits, log_t, logp, safe, valid, n)
        picked = logp.gather(1, safe[:, None]).squeeze(1)
        return -(picked * valid).sum() / n

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        logits, log_t, logp, safe, valid, n = ctx.saved_tensors
        inv_t = torch.exp(-log_t)
        resid = logp.exp()
        resid[torch.arange(len(safe)), safe] -= 1
        resid = resid * (grad_output / n)
        grad_logits = resid * inv_t * valid[:, None]
        grad_log_t = -(resid * logits * valid[:, None]).sum() * inv_t
        return grad_logits, grad_log_t.reshape(log_t.shape), None, None


class TemperatureScaling(nn.Module):
    """Post-hoc calibration: one learned temperature, fitted on a held-out set.

    ``forward(logits, labels)`` returns the mean NLL over the rows whose label
    is not ``ignore_index``.
    """

    def __init__(self, init_temperature: float = 1.5, ignore_index: int = -100):
        super().__init__()
        self.ignore_index = ignore_index
        t = torch.tensor(float(init_temperature), dtype=torch.float64)
        self.log_temperature = nn.Parameter(t.log().to(torch.get_default_dtype()))

    def forward(self, logits, labels):
        return _ScaledNLL.apply(logits, self.log_temperature, labels, self.ignore_index)
