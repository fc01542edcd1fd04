import torch


class MinCutLoss(torch.autograd.Function):
    """Relaxed normalized cut of MinCutPool, mean over the batch.

    logits: [B, N, K], softmaxed here; adj: [B, N, N], weighted, may be directed
    """

    @staticmethod
    def forward(ctx, logits, adj):
        s = torch.softmax(logits, dim=-1)
        num = (s * (adj @ s)).sum((1, 2))
        den = (adj.sum(-1, keepdim=True) * s * s).sum((1, 2))
        ctx.save_for_backward(logits, adj)
        return -(num / den).mean()

    @staticmethod
    def backward(ctx, grad):
        logits, adj = ctx.saved_tensors
        s = torch.softmax(logits, dim=-1)
        deg = adj.sum(-1, keepdim=True)
        As = torch.matmul(adj, s)
        num = (s * As).sum((1, 2), keepdim=True)
        den = (deg * s * s).sum((1, 2), keepdim=True)
        g_num = -grad / den / s.size(0)
        g_den = -g_num * num / den
        g_s = g_num * (As + adj.transpose(1, 2) @ s) + g_den * 2 * deg * s
        g_logits = s * (g_s - (g_s * s).sum(-1, keepdim=True))
        g_adj = g_num * (s @ s.transpose(1, 2)) + g_den * (s * s).sum(-1, keepdim=True)
        return g_logits, g_adj
