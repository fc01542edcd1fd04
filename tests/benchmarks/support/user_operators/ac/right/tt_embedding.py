import torch


class TTEmbeddingLookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, idx, core1, core2):
        i1 = torch.div(idx, core2.shape[0], rounding_mode="floor")
        i2 = idx % core2.shape[0]
        ctx.save_for_backward(i1, i2, core1, core2)
        return torch.bmm(core1[i1], core2[i2]).flatten(1)

    @staticmethod
    def backward(ctx, grad):
        i1, i2, core1, core2 = ctx.saved_tensors
        grad = grad.reshape(-1, core1.shape[1], core2.shape[2])
        g1 = torch.zeros_like(core1)
        g2 = torch.zeros_like(core2)
        g1 = g1.index_add(0, i1, torch.bmm(grad, core2[i2].transpose(1, 2)))
        g2 = g2.index_add(0, i2, torch.bmm(core1[i1].transpose(1, 2), grad))
        return None, g1, g2
