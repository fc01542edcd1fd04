import torch
from torch import Tensor


@torch.library.custom_op("moe::router_z_loss", mutates_args=())
def router_z_loss(logits: Tensor, mask: Tensor, coef: float) -> Tensor:
    # logits [tokens, experts], mask [tokens] with 0 on padding
    z = torch.logsumexp(logits, dim=-1)
    return coef * (z.square() * mask).sum() / mask.sum()


@router_z_loss.register_fake
def _(logits, mask, coef):
    return logits.new_empty(())


def _setup_context(ctx, inputs, output):
    ctx.save_for_backward(inputs[0], inputs[1])
    ctx.coef = inputs[2]


def _backward(ctx, grad):
    logits, mask = ctx.saved_tensors
    z = torch.logsumexp(logits, dim=-1)
    gz = grad * ctx.coef * 2 * z * mask / z.numel()
    return gz[:, None] * torch.softmax(logits, dim=-1), None, None


router_z_loss.register_autograd(_backward, setup_context=_setup_context)
