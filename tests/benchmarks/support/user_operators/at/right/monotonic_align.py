import torch


class MonotonicAlignment(torch.autograd.Function):
    """Expected alignment of monotonic attention (Raffel et al. 2017).
    p_choose: [batch, tgt, src] -> alpha of the same size"""

    @staticmethod
    def forward(ctx, p_choose):
        ctx.save_for_backward(p_choose)
        return p_choose * MonotonicAlignment.expected_reach(p_choose)

    @staticmethod
    def expected_reach(p):
        B, T, S = p.shape
        prev = torch.cat([p.new_ones(B, 1), p.new_zeros(B, S - 1)], 1)
        rows = []
        for i in range(T):
            q = prev[:, 0]
            row = [q]
            for j in range(1, S):
                q = (1 - p[:, i, j - 1]) * q + prev[:, j]
                row.append(q)
            rows.append(torch.stack(row, 1))
            prev = p[:, i] * rows[-1]
        return torch.stack(rows, 1)

    @staticmethod
    def backward(ctx, grad_alpha):
        p, = ctx.saved_tensors
        q = MonotonicAlignment.expected_reach(p)
        B, T, S = p.shape
        grad_p = []
        carry = torch.zeros_like(p[:, 0])
        for i in reversed(range(T)):
            ga = grad_alpha[:, i] + carry
            gq = [None] * S
            gp = [None] * S
            gq[S - 1] = ga[:, S - 1] * p[:, i, S - 1]
            gp[S - 1] = ga[:, S - 1] * q[:, i, S - 1]
            for j in reversed(range(S - 1)):
                gq[j] = ga[:, j] * p[:, i, j] + gq[j + 1] * (1 - p[:, i, j])
                gp[j] = (ga[:, j] - gq[j + 1]) * q[:, i, j]
            carry = torch.stack(gq, 1)
            grad_p.append(torch.stack(gp, 1))
        return torch.stack(grad_p[::-1], 1)
