import torch


class HarmonicAngle(torch.autograd.Function):
    """E = sum 1/2 k (theta - theta0)^2 over triples (i, j, k), j the vertex.

    pos (N, 3), triples (A, 3) long, k (A,), theta0 (A,)
    """

    @staticmethod
    def geometry(pos, triples):
        i, j, k = triples.unbind(1)
        a, b = pos[i] - pos[j], pos[k] - pos[j]
        la, lb = a.norm(dim=1, keepdim=True), b.norm(dim=1, keepdim=True)
        a, b = a / la, b / lb
        cos = (a * b).sum(1).clamp(-1 + 1e-9, 1 - 1e-9)
        return a, b, la, lb, cos

    @staticmethod
    def forward(ctx, pos, triples, k, theta0):
        ctx.save_for_backward(pos, triples, k, theta0)
        theta = torch.acos(HarmonicAngle.geometry(pos, triples)[-1])
        return (0.5 * k * (theta - theta0) ** 2).sum()

    @staticmethod
    def backward(ctx, g):
        pos, triples, k, theta0 = ctx.saved_tensors
        a, b, la, lb, cos = HarmonicAngle.geometry(pos, triples)
        dev = torch.acos(cos) - theta0
        f = (-g * k * dev / (1 - cos ** 2).sqrt()).unsqueeze(1)
        c = cos.unsqueeze(1)
        ga = f * (b - c * a) / la
        gb = f * (a - c * b) / lb
        i, j, l = triples.unbind(1)
        gpos = torch.zeros_like(pos).index_add(0, i, ga).index_add(0, l, gb)
        return gpos, None, g * 0.5 * dev ** 2, -g * k * dev
