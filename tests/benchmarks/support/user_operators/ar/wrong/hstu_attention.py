import torch
import torch.nn.functional as F


class HSTUAttention(torch.autograd.Function):
    """Pointwise (SiLU) attention of HSTU.

    q, k, v (B, H, N, D), rel_bias (H, N, N), lengths (B,) -> (B, H, N, D); causal, normalised by N.
    """

    @staticmethod
    def _mask(n, lengths):
        pos = torch.arange(n, device=lengths.device)
        valid = pos[None] < lengths[:, None]
        return ((pos[:, None] >= pos[None]) & valid[:, None, :] & valid[:, :, None])[:, None]

    @staticmethod
    def forward(ctx, q, k, v, rel_bias, lengths):
        n = q.size(2)
        mask = HSTUAttention._mask(n, lengths)
        s = q @ k.transpose(-1, -2) + rel_bias
        ctx.save_for_backward(q, k, v, rel_bias, lengths)
        return (F.silu(s) / n * mask) @ v

    @staticmethod
    def backward(ctx, do):
        q, k, v, rel_bias, lengths = ctx.saved_tensors
        n = q.size(2)
        mask = HSTUAttention._mask(n, lengths)
        s = q @ k.transpose(-1, -2) + rel_bias
        sig = torch.sigmoid(s)
        a = s * sig / n * mask
        dv = a.transpose(-1, -2) @ do
        da = do @ v.transpose(-1, -2) / n
        ds = da * sig * (1 + s * (1 - sig))
        return ds @ k, ds.transpose(-1, -2) @ q, dv, ds.sum(0), None
