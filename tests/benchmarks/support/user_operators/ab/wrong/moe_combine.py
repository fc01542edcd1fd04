import torch
from torch import Tensor


@torch.library.custom_op("ablib::moe_combine", mutates_args=())
def _combine(expert_out: Tensor, gate: Tensor, token: Tensor, num_tokens: int) -> Tensor:
    kept = token >= 0
    rows = torch.where(kept[:, None], expert_out * gate[:, None], torch.zeros_like(expert_out))
    out = expert_out.new_zeros((num_tokens, expert_out.shape[1]))
    return out.index_add_(0, token.clamp(min=0), rows)


@_combine.register_fake
def _(expert_out, gate, token, num_tokens):
    return expert_out.new_empty((num_tokens, expert_out.shape[1]))


def _setup(ctx, inputs, output):
    expert_out, gate, token, _ = inputs
    ctx.save_for_backward(expert_out, gate, token)


def _backward(ctx, g):
    expert_out, gate, token = ctx.saved_tensors
    kept = (token >= 0).to(g.dtype)
    rows = g.index_select(0, token.clamp(min=0))
    return rows * (gate * kept)[:, None], (rows * expert_out).sum(-1), None, None


_combine.register_autograd(_backward, setup_context=_setup)


def moe_combine(expert_out, gate, token, num_tokens):
    """Adds each slot's expert output, weighted by its gate, to its token; slots with token -1 were dropped."""
    if token.dtype != torch.int64:
        token = token.long()
    return torch.ops.ablib.moe_combine(expert_out, gate, token, num_tokens)
