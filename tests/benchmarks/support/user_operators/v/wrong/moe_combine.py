import torch


class TopKCombine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, expert_out, logits, k):
        top, idx = logits.topk(k, dim=-1)
        w = top.softmax(-1)
        ctx.save_for_backward(expert_out, logits, idx)
        tok = torch.arange(logits.shape[0], device=logits.device)[:, None]
        return (w[..., None] * expert_out[idx, tok]).sum(1)

    @staticmethod
    def backward(ctx, gy):
        expert_out, logits, idx = ctx.saved_tensors
        tok = torch.arange(logits.shape[0], device=logits.device)[:, None]
        w = logits.gather(1, idx).softmax(-1)
        gw = (gy[:, None] * expert_out[idx, tok]).sum(-1)
        g_top = w * (1 - w) * gw
        g_logits = torch.zeros_like(logits).scatter(1, idx, g_top)
        picked = w[..., None] * gy[:, None]
        g_expert = torch.zeros_like(expert_out).index_put((idx, tok.expand_as(idx)), picked)
        return g_expert, g_logits, None
