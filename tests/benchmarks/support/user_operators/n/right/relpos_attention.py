import torch
from torch.autograd.function import once_differentiable


class RelativePositionAttention(torch.autograd.Function):
    """Scaled attention with a learned bias per clipped relative distance (Shaw et al., bias form).

    Args:
        q: (B, H, L, D)
        k: (B, H, S, D)
        v: (B, H, S, D)
        bias_table: (2 * max_distance + 1, H)
        max_distance: distances are clipped to [-max_distance, max_distance]
        causal: hide keys to the right of the query

    Returns:
        context (B, H, L, D), and the attention map (B, H, L, S), which carries no gradient.
    """

    @staticmethod
    def forward(ctx, q, k, v, bias_table, max_distance=2, causal=False):
        L, S, D = q.size(-2), k.size(-2), q.size(-1)
        rel = torch.arange(S, device=q.device)[None, :] - torch.arange(L, device=q.device)[:, None]
        bucket = rel.clamp(-max_distance, max_distance) + max_distance
        scale = D ** -0.5
        score = (q @ k.transpose(-2, -1)) * scale + bias_table[bucket].permute(2, 0, 1)
        if causal:
            score = score.masked_fill(rel > 0, float("-inf"))
        att = score.softmax(-1)
        ctx.save_for_backward(q, k, v, att, bucket)
        ctx.scale = scale
        ctx.table_shape = bias_table.shape
        ctx.mark_non_differentiable(att)
        return att @ v, att

    @staticmethod
    @once_differentiable
    def backward(ctx, g_out, _g_att):
        q, k, v, att, bucket = ctx.saved_tensors
        gv = att.transpose(-2, -1) @ g_out
        ga = g_out @ v.transpose(-2, -1)
        gs = att * (ga - (ga * att).sum(-1, keepdim=True))
        gq = (gs @ k) * ctx.scale
        gk = (gs.transpose(-2, -1) @ q) * ctx.scale
        g_bias = gs.sum(0).permute(1, 2, 0).reshape(-1, ctx.table_shape[1])
        g_table = g_bias.new_zeros(ctx.table_shape)
        g_table.index_add_(0, bucket.reshape(-1), g_bias)
        return gq, gk, gv, g_table, None, None
