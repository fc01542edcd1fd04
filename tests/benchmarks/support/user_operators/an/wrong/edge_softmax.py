import torch


class EdgeSoftmax(torch.autograd.Function):
    # score (E, H), dst (E,): softmax over the edges that enter the same node
    @staticmethod
    def forward(ctx, score, dst, num_nodes):
        H = score.shape[1]
        ix = dst[:, None].expand(-1, H)
        top = torch.full((num_nodes, H), float("-inf"), dtype=score.dtype, device=score.device)
        top.scatter_reduce_(0, ix, score, "amax")
        e = torch.exp(score - top[dst])
        tot = torch.zeros(num_nodes, H, dtype=score.dtype, device=score.device).index_add_(0, dst, e)
        att = e / tot[dst]
        ctx.save_for_backward(att, dst)
        ctx.num_nodes = num_nodes
        return att

    @staticmethod
    def backward(ctx, g):
        att, dst = ctx.saved_tensors
        ga = g * att
        pooled = ga.new_zeros(ctx.num_nodes, ga.shape[1]).index_add(0, dst, g)
        return ga - att * pooled[dst], None, None
