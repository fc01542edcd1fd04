import torch
import torch.nn as nn
from torch.autograd import Function


class BilinearInteractionFn(Function):
    @staticmethod
    def forward(ctx, v, w, kind):
        i, j = torch.triu_indices(v.size(1), v.size(1), 1, device=v.device)
        ctx.save_for_backward(v, w)
        ctx.kind = kind
        return torch.einsum("bpd,pde->bpe", v[:, i], BilinearInteractionFn.pick(w, i, kind)) * v[:, j]

    @staticmethod
    def pick(w, i, kind):
        if kind == "all":
            return w.expand(i.numel(), -1, -1)
        return w[i] if kind == "each" else w

    @staticmethod
    def backward(ctx, grad):
        v, w = ctx.saved_tensors
        i, j = torch.triu_indices(v.size(1), v.size(1), 1, device=v.device)
        ws = BilinearInteractionFn.pick(w, i, ctx.kind)
        left = torch.einsum("bpd,pde->bpe", v[:, i], ws)
        g_left = grad * v[:, j]
        gv = torch.zeros_like(v)
        gv = gv.index_add(1, j, grad * left)
        gv = gv.index_add(1, i, torch.einsum("bpe,pde->bpd", g_left, ws))
        gw = torch.einsum("bpd,bpe->pde", v[:, i], g_left)
        if ctx.kind == "all":
            gw = gw.sum(0)
        elif ctx.kind == "each":
            gw = torch.zeros_like(w).index_add(0, i, gw)
        return gv, gw, None


class BilinearInteraction(nn.Module):
    """FiBiNET: v_i W * v_j for all i < j, W shared ("all"), per left field ("each") or per pair."""

    def __init__(self, fields, dim, kind="each"):
        super().__init__()
        shape = {"all": (), "each": (fields,), "interaction": (fields * (fields - 1) // 2,)}[kind]
        self.kind = kind
        self.weight = nn.Parameter(torch.randn(*shape, dim, dim) / dim ** 0.5)

    def forward(self, v):
        return BilinearInteractionFn.apply(v, self.weight, self.kind)
