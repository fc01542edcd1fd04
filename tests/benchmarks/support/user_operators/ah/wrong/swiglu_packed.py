from typing import Optional

import torch
import torch.nn.functional as F


class SwiGLUPackedFn(torch.autograd.Function):
    @classmethod
    def forward(cls, ctx, x, w1w2, b1b2, w3, b3):
        ctx.save_for_backward(x, w1w2, b1b2, w3)
        ctx.b3 = b3 is not None
        x1, x2 = cls.halves(x, w1w2, b1b2)
        return F.linear(F.silu(x1) * x2, w3, b3)

    @staticmethod
    def halves(x, w1w2, b1b2):
        b1, b2 = (None, None) if b1b2 is None else b1b2.unbind(0)
        return F.linear(x, w1w2[0], b1), F.linear(x, w1w2[1], b2)

    @classmethod
    def backward(cls, ctx, dx5):
        x, w1w2, b1b2, w3 = ctx.saved_tensors
        x1, x2 = cls.halves(x, w1w2, b1b2)
        sig = torch.sigmoid(x1)
        x3 = x1 * sig
        dx4 = dx5 @ w3
        dx2 = dx4 * x3
        dx1 = dx4 * x2 * sig * (1 + x1 * (1 - sig))
        dw3 = dx5.mT @ (x3 * x2)
        db3 = dx5.sum(0) if ctx.b3 else None
        dw1w2 = torch.stack([dx1.mT @ x, dx2.mT @ x])
        db1b2 = torch.stack([dx1.sum(0), dx2.sum(0)]) if b1b2 is not None else None
        dx = dx1 @ w1w2[0] + dx2 @ w1w2[1]
        grads = dx, dw1w2, db1b2, dw3, db3
        return tuple(g for g in grads if g is not None)


def swiglu_packed(
    x: torch.Tensor,
    w1w2: torch.Tensor,
    b1b2: Optional[torch.Tensor],
    w3: torch.Tensor,
    b3: Optional[torch.Tensor],
) -> torch.Tensor:
    """
    Computes a SwiGLU block given the weights/bias of the 3 linear layers, the first two packed.

    :Equivalent pytorch code:

    .. code-block:: python

        x1 = F.linear(x, w1, b1)
        x2 = F.linear(x, w2, b2)
        return F.linear(F.silu(x1) * x2, w3, b3)

    :Supported shapes: x ``(..., in)``, w1w2 ``(2, hidden, in)``, b1b2 ``(2, hidden)``, w3 ``(out, hidden)``,
        b3 ``(out,)``; both biases are optional
    """
    if w1w2.ndim != 3 or w1w2.shape[0] != 2:
        raise ValueError(f"Invalid shape for w1w2: {w1w2.shape}")
    if b1b2 is not None and (b1b2.ndim != 2 or b1b2.shape[0] != 2):
        raise ValueError(f"Invalid shape for b1b2: {b1b2.shape}")
    batch_shape = x.shape[:-1]
    out = SwiGLUPackedFn.apply(x.reshape(-1, x.shape[-1]), w1w2, b1b2, w3, b3)
    return out.reshape(*batch_shape, -1)
