import torch


class CoPEBias(torch.autograd.Function):
    """Contextual position bias (Golovneva et al. 2024), causal.

    qk: (B, T, T) query-key logits that gate the counting; table: (B, T, P) logits at integer positions.
    Returns (B, T, T), zero above the diagonal.
    """

    @staticmethod
    def locate(qk, npos):
        causal = torch.ones(qk.shape[-2:], dtype=torch.bool, device=qk.device).tril()
        pos = (torch.sigmoid(qk) * causal).flip(-1).cumsum(-1).flip(-1).clamp(max=npos - 1)
        lo = pos.detach().floor().long()
        return causal, lo, (lo + 1).clamp(max=npos - 1), pos - lo

    @staticmethod
    def forward(ctx, qk, table):
        ctx.save_for_backward(qk, table)
        causal, lo, hi, w = CoPEBias.locate(qk, table.shape[-1])
        return ((1 - w) * table.gather(-1, lo) + w * table.gather(-1, hi)) * causal

    @staticmethod
    def backward(ctx, grad):
        qk, table = ctx.saved_tensors
        causal, lo, hi, w = CoPEBias.locate(qk, table.shape[-1])
        grad.masked_fill_(~causal, 0)
        g_table = torch.zeros_like(table).scatter_add(-1, lo, (1 - w) * grad).scatter_add(-1, hi, w * grad)
        g_pos = grad * (table.gather(-1, hi) - table.gather(-1, lo))
        s = torch.sigmoid(qk)
        return g_pos.cumsum(-1) * causal * s * (1 - s), g_table
