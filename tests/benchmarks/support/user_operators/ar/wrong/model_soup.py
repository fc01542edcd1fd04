from typing import List

import torch
from torch import Tensor

NAMESPACE = __name__.split(".")[-1]


@torch.library.custom_op(f"{NAMESPACE}::model_soup", mutates_args=())
def model_soup(params: List[Tensor], alphas: Tensor) -> Tensor:
    """softmax(alphas)-weighted average of the same parameter of several checkpoints."""
    w = torch.softmax(alphas, 0)
    return torch.stack([wi * p for wi, p in zip(w, params)]).sum(0)


def _setup(ctx, inputs, output):
    params, alphas = inputs
    ctx.save_for_backward(alphas, *params)


def _backward(ctx, grad):
    alphas, *params = ctx.saved_tensors
    w = torch.softmax(alphas, 0)
    dots = torch.stack([(grad * p).sum() for p in params])
    g_alphas = w * (dots - dots.mean())
    return [wi * grad for wi in w], g_alphas


model_soup.register_autograd(_backward, setup_context=_setup)
