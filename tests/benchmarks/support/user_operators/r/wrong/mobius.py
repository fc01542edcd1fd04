import torch


class Mobius(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, a, b, c, d):
        ctx.save_for_backward(z, a, b, c, d)
        return (a * z + b) / (c * z + d)

    @staticmethod
    def backward(ctx, gw):
        z, a, b, c, d = ctx.saved_tensors
        q = c * z + d
        w = (a * z + b) / q
        u = gw / q.conj()
        gz = u * (a - b * w).conj()
        return (gz.sum_to_size(z.shape), (u * z.conj()).sum_to_size(a.shape), u.sum_to_size(b.shape),
                -(u * (w * z).conj()).sum_to_size(c.shape), -(u * w.conj()).sum_to_size(d.shape))
