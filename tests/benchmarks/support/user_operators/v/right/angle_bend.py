import torch


class AngleBend(torch.autograd.Function):
    """Harmonic angles 0.5 k (theta - theta0)^2, theta at the middle atom of each triple (not 0 or pi)."""

    @staticmethod
    def forward(ctx, xyz, triples, k, theta0):
        a, b, c = triples.unbind(1)
        u, v = xyz[a] - xyz[b], xyz[c] - xyz[b]
        cos = (u * v).sum(1) / (u.norm(dim=1) * v.norm(dim=1))
        ctx.save_for_backward(xyz, triples, k, theta0)
        return (0.5 * k * (torch.acos(cos) - theta0) ** 2).sum()

    @staticmethod
    def backward(ctx, grad):
        xyz, triples, k, theta0 = ctx.saved_tensors
        a, b, c = triples.unbind(1)
        u, v = xyz[a] - xyz[b], xyz[c] - xyz[b]
        lu, lv = u.norm(dim=1, keepdim=True), v.norm(dim=1, keepdim=True)
        u, v = u / lu, v / lv
        cos = (u * v).sum(1, keepdim=True)
        theta = torch.acos(cos).squeeze(1)
        dtheta = grad * k * (theta - theta0)
        pre = -(dtheta / torch.sin(theta)).unsqueeze(1)
        fa = pre * (v - cos * u) / lu
        fc = pre * (u - cos * v) / lv
        gx = torch.zeros_like(xyz).index_add(0, a, fa).index_add(0, c, fc).index_add(0, b, -fa - fc)
        gk = grad * 0.5 * (theta - theta0) ** 2
        return gx, None, gk, -dtheta
