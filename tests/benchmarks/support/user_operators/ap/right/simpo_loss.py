import torch
from torch import Tensor


def _margin(chosen: Tensor, rejected: Tensor, c_mask: Tensor, r_mask: Tensor, beta: float, gamma: float):
    nc = c_mask.sum(1).clamp(min=1)
    nr = r_mask.sum(1).clamp(min=1)
    m = beta * ((chosen * c_mask).sum(1) / nc - (rejected * r_mask).sum(1) / nr) - gamma
    return m, nc, nr


@torch.library.custom_op("preftune::simpo", mutates_args=())
def _simpo_loss(chosen: Tensor, rejected: Tensor, c_mask: Tensor, r_mask: Tensor,
               beta: float, gamma: float) -> Tensor:
    m, _, _ = _margin(chosen, rejected, c_mask, r_mask, beta, gamma)
    return torch.nn.functional.softplus(-m)


def _save(ctx, inputs, output):
    *tensors, ctx.beta, ctx.gamma = inputs
    ctx.save_for_backward(*tensors)


def _grad(ctx, g):
    chosen, rejected, c_mask, r_mask = ctx.saved_tensors
    m, nc, nr = _margin(chosen, rejected, c_mask, r_mask, ctx.beta, ctx.gamma)
    gm = -g * torch.sigmoid(-m) * ctx.beta
    return (gm / nc)[:, None] * c_mask, -(gm / nr)[:, None] * r_mask, None, None, None, None


_simpo_loss.register_autograd(_grad, setup_context=_save)


def simpo_loss(chosen: Tensor, rejected: Tensor, c_mask: Tensor, r_mask: Tensor, beta: float = 2.0, gamma: float = 1.0) -> Tensor:
    """SimPO from token log probabilities; (B, T1), (B, T2) and their bool masks -> (B,)"""
    return torch.ops.preftune.simpo(chosen, rejected, c_mask, r_mask, beta, gamma)
