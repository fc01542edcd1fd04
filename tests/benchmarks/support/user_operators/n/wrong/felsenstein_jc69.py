import torch
from torch.autograd.function import once_differentiable


class FelsensteinJC69(torch.autograd.Function):
    """Per-site log-likelihood of a rooted binary tree under Jukes-Cantor.

    Args:
        tips: (S, n, 4) leaf partials, one-hot or ambiguous
        branch: (2n - 2,) length of the branch above every node but the root
        children: (n - 1, 2) int64, the two children of internal node n + k in row k, postorder
        rate: multiplies all branch lengths

    Returns:
        (S,) log-likelihoods
    """

    @staticmethod
    def forward(ctx, tips, branch, children, rate=1.0):
        n = tips.size(1)
        decay = torch.exp(-4.0 / 3.0 * rate * branch)
        kids = children.tolist()
        partial = list(tips.unbind(1))
        message = {}
        for left, right in kids:
            for c in (left, right):
                mean = partial[c].mean(-1, keepdim=True)
                message[c] = mean + decay[c] * (partial[c] - mean)
            partial.append(message[left] * message[right])
        msgs = torch.stack([message[c] for c in range(2 * n - 2)], 1)
        parts = torch.stack(partial, 1)
        ctx.save_for_backward(msgs, parts, decay)
        ctx.kids, ctx.rate, ctx.n = kids, rate, n
        return parts[:, -1].mean(-1).log()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        msgs, parts, decay = ctx.saved_tensors
        n = ctx.n
        g_part = [None] * parts.size(1)
        root = parts[:, -1]
        g_part[-1] = (grad / root.sum(-1)).unsqueeze(-1).expand_as(root)
        g_decay = torch.zeros_like(decay)
        for k in range(len(ctx.kids) - 1, -1, -1):
            left, right = ctx.kids[k]
            g = g_part[n + k]
            for c, sibling in ((left, right), (right, left)):
                gm = g * msgs[:, sibling]
                mean = parts[:, c].mean(-1, keepdim=True)
                g_decay[c] = (gm * (parts[:, c] - mean)).sum()
                gmean = gm.mean(-1, keepdim=True)
                g_part[c] = gmean + decay[c] * gm
        g_branch = g_decay * decay * (-4.0 / 3.0 * ctx.rate)
        return torch.stack(g_part[:n], 1), g_branch, None, None
