import torch


class PowerMeanAgg(torch.autograd.Function):
    """Generalised mean of the messages of each node, (1/n sum m^p)^(1/p) (GENConv, "power").

    msg (E, F) positive, index (E,), num_nodes, p: 0-dim tensor, not zero. Nodes without messages get 0.
    """

    @staticmethod
    def forward(ctx, msg, index, num_nodes, p):
        n = torch.bincount(index, minlength=num_nodes).clamp(min=1).to(msg.dtype)[:, None]
        m = msg.new_zeros(num_nodes, msg.shape[1]).index_add(0, index, msg**p) / n
        full = m > 0
        ctx.save_for_backward(msg, index, p, n)
        ctx.num_nodes = num_nodes
        return torch.where(full, torch.where(full, m, 1.0) ** (1 / p), torch.zeros_like(m))

    @staticmethod
    def backward(ctx, g):
        msg, index, p, n = ctx.saved_tensors
        zero = msg.new_zeros(ctx.num_nodes, msg.shape[1])
        powed = msg**p
        m = zero.index_add(0, index, powed) / n
        full = m > 0
        m = torch.where(full, m, 1.0)
        y = m ** (1 / p)
        g = g * full
        g_m = g * y / (p * m)
        g_msg = (g_m / n)[index] * p * powed / msg
        by_power = (g_m * zero.index_add(0, index, powed * msg.log()) / n).sum()
        by_root = -(g * y * m.log()).sum() / p**2
        return g_msg, None, None, by_power
