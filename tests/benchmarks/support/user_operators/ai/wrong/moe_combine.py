import torch


class MoeCombine(torch.autograd.Function):
    """Weighted return of expert rows to their tokens.

    expert_out: (M, D) rows in expert order.
    gate: (N, K).
    slot: (N, K) row in expert_out, or -1 where the token was dropped.
    """

    @staticmethod
    def forward(ctx, expert_out, gate, slot):
        kept = slot >= 0
        rows = expert_out[slot.clamp(min=0)]
        ctx.save_for_backward(expert_out, gate, slot)
        return (rows * (gate * kept).unsqueeze(-1)).sum(1)

    @staticmethod
    def backward(ctx, grad):
        expert_out, gate, slot = ctx.saved_tensors
        kept = slot >= 0
        safe = slot.clamp(min=0)
        d_expert = d_gate = None
        if ctx.needs_input_grad[0]:
            rows = grad.unsqueeze(1) * (gate * kept).unsqueeze(-1)
            d_expert = torch.zeros_like(expert_out).index_add(0, safe.reshape(-1), rows.flatten(0, 1))
        if ctx.needs_input_grad[1]:
            d_gate = torch.einsum("nd,nkd->nk", grad, expert_out[safe])
        return d_expert, d_gate, None
