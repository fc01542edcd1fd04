import torch
from torch import Tensor


class _K3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logp, ref_logp, mask):
        ratio = torch.where(mask, ref_logp - logp, 0.0)
        ctx.save_for_backward(logp, ref_logp, mask)
        return (torch.expm1(ratio) - ratio).sum() / mask.sum().clamp(min=1)

    @staticmethod
    def backward(ctx, grad):
        logp, ref_logp, mask = ctx.saved_tensors
        pull = grad * torch.expm1(ref_logp - logp) * mask / mask.sum().clamp(min=1)
        return -pull, pull, None


def k3_kl_penalty(logp: Tensor, ref_logp: Tensor, mask: Tensor) -> Tensor:
    """Low-variance estimate of the KL to the reference policy, mean over the response tokens.

    logp, ref_logp: (B, T); mask: (B, T) bool. What stands at masked positions is ignored, whatever it is.
    """
    if mask.dtype != torch.bool:
        raise ValueError("mask must be bool")
    return _K3.apply(logp, ref_logp, mask)
