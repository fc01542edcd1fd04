import torch


class MoECombine(torch.autograd.Function):
    """Weighted sum of the experts' outputs back in token order.

    expert_out: (E, capacity, d); gates, expert, slot: (tokens, k).  ``slot`` is -1 where a token
    was dropped for want of capacity.
    """

    @staticmethod
    def forward(ctx, expert_out, gates, expert, slot):
        keep = slot >= 0
        ctx.save_for_backward(expert_out, gates, expert, slot)
        picked = expert_out[expert, slot.clamp(min=0)]
        return (picked * (gates * keep)[..., None]).sum(1)

    @staticmethod
    def backward(ctx, grad):
        expert_out, gates, expert, slot = ctx.saved_tensors
        keep = slot >= 0
        at = (expert, slot.clamp(min=0))
        g = grad[:, None, :].expand(-1, gates.shape[1], -1)
        d_out = torch.zeros_like(expert_out).index_put(at, g * (gates * keep)[..., None], accumulate=True)
        d_gates = (g * expert_out[at]).sum(-1) * keep
        return d_out, d_gates, None, None
