import torch
from torch.autograd.function import once_differentiable


class FusedRecurrentFunction(torch.autograd.Function):

    @staticmethod
    def forward(ctx, q, k, v, beta, scale=None, initial_state=None, output_final_state=False):
        # q, k: [B, H, T, K], v: [B, H, T, V], beta: [B, H, T] or [B, H, T, V]
        B, H, T, K = q.shape
        V = v.shape[-1]
        assert beta.dim() in (3, 4)
        scale = K ** -0.5 if scale is None else scale
        S = q.new_zeros(B, H, K, V) if initial_state is None else initial_state.clone()
        b = beta if beta.dim() == 4 else beta[..., None]
        o = torch.empty_like(v)
        hist = []
        for t in range(T):
            hist.append(S)
            kt = k[:, :, t, :, None]
            err = v[:, :, t] - (kt * S).sum(-2)
            S = S + kt * (b[:, :, t] * err)[:, :, None]
            o[:, :, t] = (q[:, :, t, :, None] * scale * S).sum(-2)
        ctx.save_for_backward(q, k, v, beta, torch.stack(hist + [S]))
        ctx.scale = scale
        ctx.use_initial_state = initial_state is not None
        return o, (S.clone() if output_final_state else None)

    @staticmethod
    @once_differentiable
    def backward(ctx, do, dht):
        q, k, v, beta, hist = ctx.saved_tensors
        b = beta if beta.dim() == 4 else beta[..., None]
        b = b.expand_as(v)
        dq, dk, dv, db = (torch.empty_like(x) for x in (q, k, v, v))
        dS = torch.zeros_like(hist[0]) if dht is None else dht.clone()
        for t in range(q.shape[2] - 1, -1, -1):
            kt = k[:, :, t, :, None]
            err = v[:, :, t] - (kt * hist[t]).sum(-2)
            dq[:, :, t] = ctx.scale * (do[:, :, t, None] * hist[t + 1]).sum(-1)
            dS = dS + ctx.scale * q[:, :, t, :, None] * do[:, :, t, None]
            dw = (dS * kt).sum(-2)
            derr = dw * b[:, :, t]
            db[:, :, t] = dw * err
            dv[:, :, t] = derr
            dk[:, :, t] = (dS * (b[:, :, t] * err)[:, :, None]).sum(-1)
            dS = dS - kt * derr[:, :, None]
        if beta.dim() == 3:
            db = db.sum(-1)
        return dq, dk, dv, db, None, dS if ctx.use_initial_state else None, None
