from typing import Optional

import torch
from torch import Tensor


class AdjointTwist(torch.autograd.Function):
    @staticmethod
    def forward(ctx, R, p, V):
        ctx.has_p = p is not None
        ctx.save_for_backward(R, V, *([p] if ctx.has_p else []))
        w = V[:, :3] @ R.T
        v = V[:, 3:] @ R.T
        if ctx.has_p:
            v = v + torch.linalg.cross(p.expand_as(w), w)
        return torch.cat([w, v], 1)

    @staticmethod
    def backward(ctx, g):
        R, V, *rest = ctx.saved_tensors
        gw, gv = g[:, :3], g[:, 3:]
        gp = None
        if ctx.has_p:
            p, = rest
            w = V[:, :3] @ R.T
            gp = torch.linalg.cross(w, gv).sum(0)
            gw = gw + torch.linalg.cross(p.expand_as(gv), gv)
        gR = gw.T @ V[:, :3] + gv.T @ V[:, 3:]
        return gR, gp, torch.cat([gw @ R, gv @ R], 1)


def adjoint_twist(R: Tensor, p: Optional[Tensor], V: Tensor) -> Tensor:
    """Change of frame of twists.

    R: (3, 3) rotation, p: (3,) translation or None, V: (n, 6) twists (angular, linear).
    Returns [R w, R v + p x R w].
    """
    return AdjointTwist.apply(R, p, V)
