import torch


class FirstSpikeTime(torch.autograd.Function):
    """Exact first spike time of non-leaky integrate-and-fire neurons with step currents.

    t_in: (B, I) input spike times, weight: (O, I), threshold > 0.
    A neuron that never reaches the threshold reports ``t_max``.
    Gradients are those of the closed form (threshold + sum w t) / sum w over the causal inputs.
    """

    @staticmethod
    def forward(ctx, t_in, weight, threshold=1.0, t_max=10.0):
        ts, order = t_in.sort(dim=1)
        w = weight[:, order].transpose(0, 1)                       # (B, O, I)
        cum_w = w.cumsum(-1)
        cum_wt = (w * ts[:, None]).cumsum(-1)
        cand = (threshold + cum_wt) / torch.where(cum_w > 0, cum_w, torch.ones_like(cum_w))
        nxt = torch.cat([ts[:, 1:], torch.full_like(ts[:, :1], float("inf"))], 1)[:, None]
        ok = (cum_w > 0) & (cand >= ts[:, None]) & (cand <= nxt) & (cand < t_max)
        fired = ok.any(-1)
        k = ok.to(torch.uint8).argmax(-1, keepdim=True)            # first valid prefix
        t_out = torch.where(fired, cand.gather(-1, k).squeeze(-1), torch.full_like(cand[..., 0], t_max))
        rank = order.argsort(1)[:, None]
        causal = (rank <= k) & fired[..., None]                    # (B, O, I)
        ctx.save_for_backward(t_in, weight, t_out, causal)
        return t_out

    @staticmethod
    def backward(ctx, grad):
        t_in, weight, t_out, causal = ctx.saved_tensors
        c = causal.to(weight.dtype)
        w_sum = (c * weight).sum(-1)
        w_sum = torch.where(causal.any(-1), w_sum, torch.ones_like(w_sum))
        g = (grad / w_sum)[..., None] * c
        grad_t = (g * weight).sum(1)
        grad_w = (g * (t_in[:, None] - t_out[..., None])).sum(0)
        return grad_t, grad_w, None, None
