from typing import Optional

import torch
from torch import Tensor


@torch.library.custom_op("moe::smear_linear", mutates_args=())
def _smear(x: Tensor, gates: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    merged = torch.einsum("be,eoi->boi", gates, weight)
    y = x @ merged.mT
    if bias is not None:
        y = y + (gates @ bias).unsqueeze(1)
    return y


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, g: Tensor):
    x, gates, weight, bias = ctx.saved_tensors
    merged = torch.einsum("be,eoi->boi", gates, weight)
    dx = g @ merged
    dm = g.mT @ x
    dgates = torch.einsum("boi,eoi->be", dm, weight)
    dweight = torch.einsum("be,boi->eoi", gates, dm)
    dbias = None
    if bias is not None:
        gs = g.sum(1)
        dbias = gates.T @ gs
    return dx, dgates, dweight, dbias


_smear.register_autograd(_backward, setup_context=_setup)


def smear_linear(x: Tensor, gates: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    """SMEAR: experts merged per sample before the product. x (B, N, I), gates (B, E), weight (E, O, I), bias (E, O)"""
    return torch.ops.moe.smear_linear(x, gates, weight, bias)
