import torch
from torch import Tensor


class ProductKeyMemory(torch.autograd.Function):
    """Product-key lookup. q (B, 2d), keys1, keys2 (n, d), values (n * n, E), k best -> (B, E), rows (B, k)"""

    @staticmethod
    def forward(ctx, q: Tensor, keys1: Tensor, keys2: Tensor, values: Tensor, k: int):
        q1, q2 = q.chunk(2, -1)
        n = keys1.size(0)
        t1, i1 = (q1 @ keys1.T).topk(k, -1)
        t2, i2 = (q2 @ keys2.T).topk(k, -1)
        t, j = (t1[:, :, None] + t2[:, None, :]).flatten(1).topk(k, -1)
        r1, r2 = i1.gather(1, j // k), i2.gather(1, j % k)
        rows = r1 * n + r2
        ctx.save_for_backward(q, keys1, keys2, values, rows)
        ctx.mark_non_differentiable(rows)
        return torch.einsum("bk,bke->be", t.softmax(-1), values[rows]), rows

    @staticmethod
    def backward(ctx, g: Tensor, _):
        q, keys1, keys2, values, rows = ctx.saved_tensors
        q1, q2 = q.chunk(2, -1)
        n = keys1.size(0)
        r1, r2 = rows // n, rows % n
        k1, k2 = keys1[r1], keys2[r2]
        w = ((k1 @ q1.unsqueeze(-1)) + (k2 @ q2.unsqueeze(-1))).squeeze(-1).softmax(-1)
        dw = torch.einsum("be,bke->bk", g, values[rows])
        dt = (w * (dw - (w * dw).sum(-1, keepdim=True))).unsqueeze(-1)
        dvalues = torch.zeros_like(values).index_put((rows,), w.unsqueeze(-1) * g.unsqueeze(1), accumulate=True)
        dk1 = torch.zeros_like(keys1).index_put((r1,), dt * q1.unsqueeze(1), accumulate=True)
        dk2 = torch.zeros_like(keys2).index_put((r2,), dt * q2.unsqueeze(1), accumulate=True)
        dq = torch.cat([(dt * k1).sum(1), (dt * k2).sum(1)], -1)
        return dq, dk1, dk2, dvalues, None
