import torch


class CategoricalProjection(torch.autograd.Function):
    @staticmethod
    def forward(ctx, next_dist, rewards, dones, gamma, v_min, v_max):
        batch, n_atoms = next_dist.shape
        dz = (v_max - v_min) / (n_atoms - 1)
        support = torch.linspace(v_min, v_max, n_atoms, dtype=next_dist.dtype, device=next_dist.device)
        not_done = (~dones).to(next_dist.dtype)
        tz = rewards[:, None] + gamma * not_done[:, None] * support[None, :]
        b = (tz.clamp(v_min, v_max) - v_min) / dz
        lower = b.floor().long()
        upper = b.ceil().long()
        same = (lower == upper).to(b.dtype)

        out = torch.zeros_like(next_dist)
        out.scatter_add_(1, lower, next_dist * (upper.to(b.dtype) + same - b))
        out.scatter_add_(1, upper, next_dist * (b - lower.to(b.dtype)))
        ctx.save_for_backward(b, lower, upper)
        return out

    @staticmethod
    def backward(ctx, grad):
        b, lower, upper = ctx.saved_tensors
        same = (lower == upper).to(b.dtype)
        w_lower = upper.to(b.dtype) + same - b
        w_upper = b - lower.to(b.dtype)
        grad_dist = grad.gather(1, lower) * w_lower + grad.gather(1, upper) * w_upper
        return grad_dist, None, None, None, None, None
