import re

import torch
from torch import nn

# a namespace for each copy of this file: registering a name again would replace the operator
NS = "sparsekit_" + re.sub(r"\W", "_", __file__)


@torch.library.custom_op(f"{NS}::ell_mv", mutates_args=())
def ell_mv(vals: torch.Tensor, cols: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return (vals * (cols >= 0) * x[cols.clamp(min=0)]).sum(1)


@ell_mv.register_fake
def _(vals, cols, x):
    return vals.new_empty(vals.shape[0])


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, g):
    vals, cols, x = ctx.saved_tensors
    real = cols >= 0
    j = cols.clamp(min=0)
    g_vals = g[:, None] * x[j] * real
    g_x = torch.zeros_like(x).index_add(0, j.flatten(), (g[:, None] * vals * real).flatten())
    return g_vals, None, g_x


ell_mv.register_autograd(_backward, setup_context=_setup)


class EllMatrix(nn.Module):
    """Sparse matrix in ELLPACK layout with trainable entries.

    cols (rows, width), -1 where a row has fewer entries; what stands in vals there is ignored.
    """

    def __init__(self, cols):
        super().__init__()
        self.register_buffer("cols", cols)
        self.vals = nn.Parameter(torch.randn(cols.shape))

    def forward(self, x):
        return ell_mv(self.vals, self.cols, x)
