import torch
import torch.nn.functional as F


class CausalConv1dFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias=None, initial_states=None, activation=None):
        """
        x: (batch, dim, seqlen)
        weight: (dim, width)
        bias: (dim,)
        initial_states: (batch, dim, width - 1)
        activation: either None or "silu" or "swish"

        out: (batch, dim, seqlen)
        """
        if activation not in [None, "silu", "swish"]:
            raise NotImplementedError("activation must be None, silu, or swish")
        ctx.activation = activation in ["silu", "swish"]
        ctx.save_for_backward(x, weight, bias, initial_states)
        out = CausalConv1dFn._pre(CausalConv1dFn._full(x, weight, initial_states), weight, bias, x.shape[-1])
        return F.silu(out) if ctx.activation else out

    @staticmethod
    def _full(x, weight, initial_states):
        if initial_states is None:
            return F.pad(x, (weight.shape[1] - 1, 0))
        return torch.cat([initial_states, x], dim=-1)

    @staticmethod
    def _pre(full, weight, bias, seqlen):
        out = sum(full[..., i : i + seqlen] * weight[:, i, None] for i in range(weight.shape[1]))
        return out if bias is None else out + bias[:, None]

    @staticmethod
    def backward(ctx, dout):
        x, weight, bias, initial_states = ctx.saved_tensors
        seqlen, width = x.shape[-1], weight.shape[1]
        full = CausalConv1dFn._full(x, weight, initial_states)
        if ctx.activation:
            pre = CausalConv1dFn._pre(full, weight, bias, seqlen)
            sig = torch.sigmoid(pre)
            dout = dout * sig * (1 + pre * (1 - sig))
        dfull = sum(F.pad(dout * weight[:, i, None], (i, width - 1 - i)) for i in range(width))
        full = F.pad(x, (width - 1, 0))
        dweight = torch.stack([(dout * full[..., i : i + seqlen]).sum((0, 2)) for i in range(width)], 1)
        dbias = dout.sum((0, 2)) if bias is not None else None
        dinit = dfull[..., : width - 1] if initial_states is not None else None
        return dfull[..., width - 1 :], dweight, dbias, dinit, None
