import torch


class SpMM(torch.autograd.Function):
    """Sum of messages edge_weight * x[src] at dst.

    :param edge_index: LongTensor (2, E), rows src and dst
    :param edge_weight: (E,) or None for ones
    :param x: node features (N, F)
    """

    @staticmethod
    def forward(edge_index, edge_weight, x):
        src, dst = edge_index
        msg = x[src] if edge_weight is None else edge_weight[:, None] * x[src]
        return torch.zeros_like(x).index_add(0, dst, msg)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        edge_index, edge_weight, x = ctx.saved_tensors
        src, dst = edge_index
        gw = gx = None
        if edge_weight is not None and ctx.needs_input_grad[1]:
            gw = (grad[src] * x[dst]).sum(-1)
        if ctx.needs_input_grad[2]:
            back = grad[dst] if edge_weight is None else edge_weight[:, None] * grad[dst]
            gx = torch.zeros_like(x).index_add(0, src, back)
        return None, gw, gx
