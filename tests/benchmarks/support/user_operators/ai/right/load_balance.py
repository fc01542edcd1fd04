from typing import Optional, Tuple

import torch
from torch import Tensor

NS = "moe_balance_v1"


def _dispatch(experts: Tensor, valid: Tensor, n_experts: int, dtype: torch.dtype) -> Tensor:
    counts = torch.zeros(n_experts, dtype=dtype, device=experts.device)
    src = valid.to(dtype)[:, None].expand(experts.shape).reshape(-1)
    return counts.index_add(0, experts.reshape(-1), src) / (valid.sum().clamp(min=1) * experts.shape[1])


@torch.library.custom_op(NS + "::aux_loss", mutates_args=())
def aux_loss(logits: Tensor, experts: Tensor, valid: Tensor, coef: float) -> Tensor:
    frac = _dispatch(experts, valid, logits.shape[1], logits.dtype)
    mean_p = (logits.softmax(-1) * valid[:, None]).sum(0) / valid.sum().clamp(min=1)
    return coef * logits.shape[1] * (frac * mean_p).sum()


@aux_loss.register_fake
def _(logits, experts, valid, coef):
    return logits.new_empty(())


def _setup(ctx, inputs, output):
    logits, experts, valid, coef = inputs
    ctx.save_for_backward(logits, experts, valid)
    ctx.coef = coef


def _backward(ctx, grad):
    logits, experts, valid = ctx.saved_tensors
    frac = _dispatch(experts, valid, logits.shape[1], logits.dtype)
    p = logits.softmax(-1)
    gp = grad * ctx.coef * logits.shape[1] * frac * valid[:, None] / valid.sum().clamp(min=1)
    return p * (gp - (gp * p).sum(-1, keepdim=True)), None, None, None


aux_loss.register_autograd(_backward, setup_context=_setup)


def load_balance_loss(logits: Tensor, experts: Tensor, valid: Optional[Tensor] = None, coef: float = 0.01) -> Tensor:
    """Switch load balancing loss.

    Args:
        logits: router logits ``(N, E)``.
        experts: chosen experts ``(N, K)``.
        valid: bool ``(N,)``, False at padding.
        coef: factor of the loss.
    """
    if valid is None:
        valid = torch.ones(logits.shape[0], dtype=torch.bool, device=logits.device)
    return torch.ops.moe_balance_v1.aux_loss(logits, experts, valid, coef)
