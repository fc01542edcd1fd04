import torch


class CRFLogPartition(torch.autograd.Function):
    """Log partition function of a linear chain CRF.

    Args:
        emissions: (T, K) scores
        transitions: (K, K), ``transitions[i, j]`` scores going from i to j
    """

    @staticmethod
    def messages(emissions, transitions):
        fwd = [emissions[0]]
        for e in emissions[1:]:
            fwd.append(torch.logsumexp(fwd[-1][:, None] + transitions, 0) + e)
        bwd = [torch.zeros_like(emissions[0])]
        for e in emissions[1:].flip(0):
            bwd.append(torch.logsumexp(transitions + (e + bwd[-1])[None, :], 1))
        return torch.stack(fwd), torch.stack(bwd[::-1])

    @staticmethod
    def forward(emissions, transitions):
        fwd, _ = CRFLogPartition.messages(emissions, transitions)
        return fwd[-1].logsumexp(0)

    @staticmethod
    def setup_context(ctx, inputs, output):
        emissions, transitions = inputs
        ctx.save_for_backward(emissions, transitions, output)

    @staticmethod
    def backward(ctx, grad):
        emissions, transitions, logz = ctx.saved_tensors
        fwd, bwd = CRFLogPartition.messages(emissions, transitions)
        unary = (fwd + bwd - logz).exp()
        right = emissions[1:] + bwd[1:]
        pair = (fwd[:-1, None, :] + transitions + right[:, :, None] - logz).exp()
        return grad * unary, grad * pair.sum(0)
