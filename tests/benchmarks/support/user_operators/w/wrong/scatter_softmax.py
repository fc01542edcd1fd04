import torch


def _group_sum(v, idx, n):
    return v.new_zeros(n).index_add(0, idx, v)


class ScatterSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(scores, group, num_groups):
        top = scores.new_full((num_groups,), float("-inf"))
        top = top.scatter_reduce(0, group, scores, "amax")
        e = torch.exp(scores - top[group])
        return e / _group_sum(e, group, num_groups)[group]

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.n = inputs[2]
        ctx.save_for_backward(output, inputs[1])

    @staticmethod
    def backward(ctx, g):
        p, group = ctx.saved_tensors
        dot = (g * p).sum()
        return p * (g - dot), None, None
