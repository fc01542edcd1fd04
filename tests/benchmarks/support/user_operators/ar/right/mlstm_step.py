import torch
from torch import Tensor


class MLSTMStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, C: Tensor, n: Tensor, q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor):
        """One recurrent step of the mLSTM (xLSTM).

        C [B, dv, dk], n [B, dk], q, k [B, dk], v [B, dv]; i, f [B] gates after their activation.
        Returns C_new, n_new, h with h = C_new q / max(|n_new . q|, 1).
        """
        C_new = f[:, None, None] * C + i[:, None, None] * v[:, :, None] * k[:, None, :]
        n_new = f[:, None] * n + i[:, None] * k
        s = (n_new * q).sum(-1, keepdim=True)
        h = torch.einsum("bvk,bk->bv", C_new, q) / s.abs().clamp(min=1.0)
        ctx.save_for_backward(C, n, q, k, v, i, f, C_new, n_new, h)
        return C_new, n_new, h

    @staticmethod
    def backward(ctx, dC_new, dn_new, dh):
        C, n, q, k, v, i, f, C_new, n_new, h = ctx.saved_tensors
        s = (n_new * q).sum(-1, keepdim=True)
        den = s.abs().clamp(min=1.0)
        dnum = dh / den
        ds = -(dnum * h).sum(-1, keepdim=True) * torch.sign(s) * (s.abs() > 1.0)
        dC_new = dC_new + dnum[:, :, None] * q[:, None, :]
        dn_new = dn_new + ds * q
        dq = torch.einsum("bvk,bv->bk", C_new, dnum) + ds * n_new
        df = (dC_new * C).sum((1, 2)) + (dn_new * n).sum(1)
        dvk = torch.einsum("bvk,bk->bv", dC_new, k)
        di = (dvk * v).sum(1) + (dn_new * k).sum(1)
        dv = i[:, None] * dvk
        dk = i[:, None] * (torch.einsum("bvk,bv->bk", dC_new, v) + dn_new)
        dC = f[:, None, None] * dC_new
        dn = f[:, None] * dn_new
        return dC, dn, dq, dk, dv, di, df
