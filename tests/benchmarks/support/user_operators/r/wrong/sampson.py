import torch


class Sampson(torch.autograd.Function):
    # F (3, 3), x1 and x2 (N, 2)
    @staticmethod
    def forward(ctx, F, x1, x2):
        ctx.save_for_backward(F, x1, x2)
        a, b = hom(x1), hom(x2)
        l2, l1 = a @ F.t(), b @ F
        e = (b * l2).sum(-1)
        return e ** 2 / (l2[:, :2].pow(2).sum(-1) + l1[:, :2].pow(2).sum(-1))

    @staticmethod
    def backward(ctx, g):
        F, x1, x2 = ctx.saved_tensors
        a, b = hom(x1), hom(x2)
        l2, l1 = a @ F.t(), b @ F
        e = (b * l2).sum(-1)
        d = l2[:, :2].pow(2).sum(-1) + l1[:, :2].pow(2).sum(-1)
        ge = (2 * g * e / d)[:, None]
        gd = (-g * e ** 2 / d ** 2)[:, None]
        keep = F.new_tensor([1.0, 1.0, 1.0])
        g2 = ge * b + 2 * gd * l2 * keep
        g1 = 2 * gd * l1 * keep
        gF = g2.t() @ a + b.t() @ g1
        ga = g2 @ F
        gb = ge * l2 + g1 @ F.t()
        return gF, ga[:, :2], gb[:, :2]


def hom(x):
    return torch.cat([x, torch.ones_like(x[:, :1])], -1)
