import torch


class DotProdWithIdx(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, index, table, rel_idx):
        """
        input: q: (N, h, hdim), index: (M), table: (L, h, hdim, 3), rel_idx: (M, 3)
        output: output: [M, h]
        """
        bias = 0
        for a in range(3):
            bias = bias + table[rel_idx[:, a], :, :, a]
        ctx.save_for_backward(q, index, table, rel_idx)
        return (q[index] * bias).sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        q, index, table, rel_idx = ctx.saved_tensors
        g = grad_output.unsqueeze(-1)
        bias = sum(table[rel_idx[:, a], :, :, a] for a in range(3))
        grad_q = torch.zeros_like(q).index_add(0, index, g * bias)
        gq = g * q[index]
        grad_table = torch.stack(
            [torch.zeros_like(table[..., a]).index_add(0, rel_idx[:, a], gq) for a in range(3)], -1)
        return grad_q, None, grad_table, None


dot_prod_with_idx = DotProdWithIdx.apply
