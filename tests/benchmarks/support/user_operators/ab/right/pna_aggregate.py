import torch
from torch.autograd.function import once_differentiable


class PNAAggregate(torch.autograd.Function):
    """Mean, maximum and standard deviation of the messages that a node gets.

    msg (edges, d), dst (edges,) -> (nodes, 3 * d). A node without messages gets zeros. Ties of the
    maximum share its gradient. The deviation has slope 0 where it is 0.
    """

    @staticmethod
    def forward(ctx, msg, dst, num_nodes):
        n, d = num_nodes, msg.shape[1]
        index = dst[:, None].expand_as(msg)
        count = torch.bincount(dst, minlength=n).to(msg.dtype).clamp(min=1)[:, None]
        mean = msg.new_zeros(n, d).index_add_(0, dst, msg) / count
        top = msg.new_zeros(n, d).scatter_reduce_(0, index, msg, "amax", include_self=False)
        var = msg.new_zeros(n, d).index_add_(0, dst, (msg - mean[dst]) ** 2) / count
        std = var.sqrt()
        ctx.save_for_backward(msg, dst, count, mean, top, std)
        return torch.cat([mean, top, std], 1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        msg, dst, count, mean, top, std = ctx.saved_tensors
        g_mean, g_top, g_std = g.chunk(3, 1)
        hit = (msg == top[dst]).to(msg.dtype)
        ties = torch.zeros_like(top).index_add_(0, dst, hit).clamp(min=1)
        slope = torch.where(std > 0, g_std / (count * std), torch.zeros_like(std))
        out = (g_mean / count)[dst] + hit * (g_top / ties)[dst]
        return out + slope[dst] * (msg - mean[dst]), None, None
