import re
import torch
from torch import Tensor

# reloading the file under another name must not clash
OPNAME = "phylo_%s::k2p" % re.sub("[^0-9a-zA-Z_]", "_", __name__)


@torch.library.custom_op(OPNAME, mutates_args=())
def k2p(transitions: Tensor, transversions: Tensor) -> Tensor:
    """Kimura two-parameter distance from the proportions of transitions and transversions."""
    a = 1 - 2 * transitions - transversions
    b = 1 - 2 * transversions
    return -0.5 * a.log() - 0.25 * b.log()


@k2p.register_fake
def _(transitions, transversions):
    return torch.empty_like(transitions)


def _save(ctx, inputs, output):
    P, Q = inputs
    ctx.save_for_backward(P, Q)


def _grad(ctx, grad_d):
    P, Q = ctx.saved_tensors
    a = 1 - 2 * P - Q
    b = 1 - 2 * Q
    return grad_d / a, grad_d * (0.5 / a + 0.25 / b)


k2p.register_autograd(_grad, setup_context=_save)
