import torch
import torch.nn.functional as F
from torch import Tensor


class ForgettingAttention(torch.autograd.Function):
    """Causal softmax attention with forget gates: logits_ij += sum_{j<l<=i} log sigmoid(f_l).

    q, k (B, H, N, D), v (B, H, N, E), f (B, H, N) gate logits.
    """

    @staticmethod
    def _probs(q: Tensor, k: Tensor, f: Tensor) -> Tensor:
        c = F.logsigmoid(f).cumsum(-1)
        s = q @ k.mT * q.size(-1) ** -0.5 + c.unsqueeze(-1) - c.unsqueeze(-2)
        future = torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).triu(1)
        return s.masked_fill(future, float("-inf")).softmax(-1)

    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor, f: Tensor) -> Tensor:
        ctx.save_for_backward(q, k, v, f)
        return ForgettingAttention._probs(q, k, f) @ v

    @staticmethod
    def backward(ctx, do: Tensor):
        q, k, v, f = ctx.saved_tensors
        p = ForgettingAttention._probs(q, k, f)
        dv = p.mT @ do
        dp = do @ v.mT
        ds = p * (dp - (dp * p).sum(-1, keepdim=True))
        dc = ds.sum(-1) - ds.sum(-2)
        dlog = dc.flip(-1).cumsum(-1).flip(-1)
        df = dlog * torch.sigmoid(-f)
        scale = q.size(-1) ** -0.5
        return ds @ k * scale, ds.mT @ q * scale, dv, df
