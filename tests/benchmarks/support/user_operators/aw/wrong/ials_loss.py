import torch


class _IALS(torch.autograd.Function):
    @staticmethod
    def forward(ctx, users, items, u_idx, i_idx, alpha):
        ctx.save_for_backward(users, items, u_idx, i_idx)
        ctx.alpha = alpha
        score = (users[u_idx] * items[i_idx]).sum(-1)
        everywhere = ((users.T @ users) * (items.T @ items)).sum()
        return ((score - 1) ** 2).sum() + alpha * everywhere

    @staticmethod
    def backward(ctx, grad):
        users, items, u_idx, i_idx = ctx.saved_tensors
        eu, ei = users[u_idx], items[i_idx]
        err = 2 * grad * ((eu * ei).sum(-1, keepdim=True) - 1)
        g_users = 2 * ctx.alpha * grad * users @ (items.T @ items)
        g_items = 2 * ctx.alpha * grad * items @ (users.T @ users)
        g_users = g_users + torch.zeros_like(users).index_add(0, u_idx, err * ei)
        g_items = g_items + torch.zeros(items.shape, device=items.device).index_add(0, i_idx, err * eu)
        return g_users, g_items, None, None, None


def implicit_als_loss(users, items, u_idx, i_idx, alpha=0.1):
    return _IALS.apply(users, items, u_idx, i_idx, alpha)
