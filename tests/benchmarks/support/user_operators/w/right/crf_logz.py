import torch


def _forward_pass(em, tr):
    alpha = [em[0]]
    for e in em[1:]:
        alpha.append(e + torch.logsumexp(alpha[-1][:, None] + tr, 0))
    return torch.stack(alpha)


def _backward_pass(em, tr):
    beta = [torch.zeros_like(em[0])]
    for e in em.flip(0)[:-1]:
        beta.append(torch.logsumexp(tr + e + beta[-1], 1))
    return torch.stack(beta[::-1])


class CRFLogPartition(torch.autograd.Function):
    """log Z of a linear chain: emissions (T, K), transitions (K, K) from row to column."""

    @staticmethod
    def forward(ctx, emissions, transitions):
        ctx.save_for_backward(emissions, transitions)
        return torch.logsumexp(_forward_pass(emissions, transitions)[-1], 0)

    @staticmethod
    def backward(ctx, g):
        em, tr = ctx.saved_tensors
        a, b = _forward_pass(em, tr), _backward_pass(em, tr)
        logz = torch.logsumexp(a[-1], 0)
        node = (a + b - logz).exp()
        pair = (a[:-1, :, None] + tr + (em + b)[1:, None, :] - logz).exp()
        return g * node, g * pair.sum(0)
