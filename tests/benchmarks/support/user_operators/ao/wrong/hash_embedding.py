import torch
import torch.nn as nn

P1, P2, P3 = 2654435761, 40503, 97


class _SignedBag(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, bucket, sign, pad):
        ctx.save_for_backward(bucket, sign, pad)
        ctx.rows = table.shape[0]
        out = (table[bucket] * sign.unsqueeze(-1)).sum(-2)
        return out.masked_fill(pad.unsqueeze(-1), 0)

    @staticmethod
    def backward(ctx, grad):
        bucket, sign, pad = ctx.saved_tensors
        src = grad.unsqueeze(-2) * sign.unsqueeze(-1)
        D = grad.shape[-1]
        gt = grad.new_zeros(ctx.rows, D).index_add(0, bucket.reshape(-1), src.reshape(-1, D))
        return gt, None, None, None


class HashEmbedding(nn.Module):
    """
    Feature hashing: each id goes to `probes` rows of a small table, with signs.
    Ids equal to `padding_idx` give a row of zeros.
    """

    def __init__(self, rows, dim, probes=2, padding_idx=0):
        super().__init__()
        self.table = nn.Parameter(torch.randn(rows, dim))
        self.probes, self.padding_idx = probes, padding_idx

    def forward(self, ids):
        k = torch.arange(1, self.probes + 1, device=ids.device)
        h = (ids.unsqueeze(-1) * P1 + k * P2) % (2 ** 31 - 1)
        bucket = h % self.table.shape[0]
        sign = ((h // P3) % 2 * 2 - 1).to(self.table.dtype)
        return _SignedBag.apply(self.table, bucket, sign, ids == self.padding_idx)
