import torch


class HMMForward(torch.autograd.Function):
    """Log likelihood of a batch of sequences under a hidden Markov model (profile scoring).

    log_pi: (K,), log_A: (K, K) from -> to, log_emit: (B, T, K), lengths: (B,) with 1 <= length <= T
    """

    @staticmethod
    def forward(ctx, log_pi, log_A, log_emit, lengths):
        B, T, K = log_emit.shape
        alpha = [log_pi + log_emit[:, 0]]
        for t in range(1, T):
            nxt = torch.logsumexp(alpha[-1].unsqueeze(2) + log_A, dim=1) + log_emit[:, t]
            live = (t < lengths).unsqueeze(1)
            alpha.append(torch.where(live, nxt, alpha[-1]))
        alpha = torch.stack(alpha)
        ctx.save_for_backward(log_A, log_emit, lengths, alpha)
        return torch.logsumexp(alpha[-1], dim=1)

    @staticmethod
    def backward(ctx, grad):
        log_A, log_emit, lengths, alpha = ctx.saved_tensors
        B, T, K = log_emit.shape
        G = torch.softmax(alpha[-1], dim=1) * grad.unsqueeze(1)
        g_emit = torch.zeros_like(log_emit)
        g_A = torch.zeros_like(log_A)
        for t in range(T - 1, 0, -1):
            live = (t < lengths).to(G.dtype).unsqueeze(1)
            pred = alpha[t] - log_emit[:, t]
            post = torch.exp(alpha[t - 1].unsqueeze(2) + log_A - pred.unsqueeze(1))
            post = post * (live * G).unsqueeze(1)
            g_emit[:, t] = live * G
            g_A += post.sum(0)
            G = post.sum(2) + (1 - live) * G
        g_emit[:, 0] = G
        return G.sum(0), g_A, g_emit, None
