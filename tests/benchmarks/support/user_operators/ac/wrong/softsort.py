import torch


class SoftSort(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, tau, pw=1):
        ranked, perm = scores.sort(dim=1, descending=True)
        diff = ranked[:, :, None] - scores[:, None, :]
        ctx.save_for_backward(scores, tau, perm)
        ctx.pw = pw
        return torch.softmax(-diff.abs() ** pw / tau, dim=-1)

    @staticmethod
    def backward(ctx, g):
        scores, tau, perm = ctx.saved_tensors
        ranked = scores.gather(1, perm)
        diff = ranked[:, :, None] - scores[:, None, :]
        dist = diff.abs() ** ctx.pw
        P = torch.softmax(-dist / tau, dim=-1)
        gl = P * (g - (P * g).sum(-1, keepdim=True))
        g_tau = (gl * dist).sum() / tau ** 2
        if ctx.pw == 1:
            slope = diff.sign()
        else:
            slope = ctx.pw * diff.sign() * diff.abs() ** (ctx.pw - 1)
        g_diff = -gl * slope / tau
        g_scores = -g_diff.sum(1)
        return g_scores, g_tau, None
