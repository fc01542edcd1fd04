from typing import Optional, Tuple

import torch
from torch.autograd.function import once_differentiable


class FusedRecurrentGLAFunction(torch.autograd.Function):

    @staticmethod
    def forward(ctx, q, k, v, gk, scale, initial_state, reverse):
        B, H, T, K = q.shape
        V = v.shape[-1]
        h = initial_state.clone() if initial_state is not None else q.new_zeros(B, H, K, V)
        o = torch.empty_like(v)
        states = []
        order = range(T - 1, -1, -1) if reverse else range(T)
        for t in order:
            states.append(h)
            h = h * gk[:, :, t].exp().unsqueeze(-1) + k[:, :, t].unsqueeze(-1) * v[:, :, t].unsqueeze(-2)
            o[:, :, t] = ((q[:, :, t] * scale).unsqueeze(-1) * h).sum(-2)
        ctx.save_for_backward(q, k, v, gk, torch.stack(states, 2), h)
        ctx.scale, ctx.reverse = scale, reverse
        ctx.has_init = initial_state is not None
        return o, h.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, do, dht):
        q, k, v, gk, states, last = ctx.saved_tensors
        T = q.shape[2]
        dq, dk, dv, dg = map(torch.zeros_like, (q, k, v, gk))
        dh = dht.clone()
        after = last
        order = range(T) if ctx.reverse else range(T - 1, -1, -1)
        for n, t in enumerate(order):
            before = states[:, :, T - 1 - n]
            dq[:, :, t] = (do[:, :, t].unsqueeze(-2) * after).sum(-1) * ctx.scale
            dh = dh + (q[:, :, t] * ctx.scale).unsqueeze(-1) * do[:, :, t].unsqueeze(-2)
            dk[:, :, t] = (dh * v[:, :, t].unsqueeze(-2)).sum(-1)
            dv[:, :, t] = (dh * k[:, :, t].unsqueeze(-1)).sum(-2)
            dh = dh * gk[:, :, t].exp().unsqueeze(-1)
            dg[:, :, t] = (dh * before).sum(-1)
            after = before
        return dq, dk, dv, dg, None, dh if ctx.has_init else None, None


def fused_recurrent_gla(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    gk: torch.Tensor,
    scale: Optional[float] = None,
    initial_state: Optional[torch.Tensor] = None,
    output_final_state: bool = False,
    reverse: bool = False,
) -> Tuple[torch.Tensor, Optional[torch.Tensor]]:
    r"""
    Args:
        q, k: queries and keys of shape `[B, H, T, K]`
        v: values of shape `[B, H, T, V]`
        gk: forget gates in log space of shape `[B, H, T, K]`
        scale: defaults to `1 / sqrt(K)`
        initial_state: `[B, H, K, V]`
        output_final_state: also return the last state
        reverse: run from the last step to the first
    """
    if scale is None:
        scale = q.shape[-1] ** -0.5
    if gk.shape != k.shape:
        raise ValueError(f"gk should have the shape of k, got {tuple(gk.shape)}")
    o, ht = FusedRecurrentGLAFunction.apply(q, k, v, gk, scale, initial_state, reverse)
    if output_final_state:
        return o, ht
    return o
