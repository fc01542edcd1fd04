import torch


def _edge(pix, tri, k):
    e = tri.roll(-1, 1) - tri
    rel = pix[None, None] - tri[:, :, None]
    val = e[:, :, None, 0] * rel[..., 1] - e[:, :, None, 1] * rel[..., 0]
    return e, rel, torch.sigmoid(k * val)


class TriangleCoverage(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pix, tri, k):
        ctx.save_for_backward(pix, tri)
        ctx.k = k
        return _edge(pix, tri, k)[2].prod(1)

    @staticmethod
    def backward(ctx, g):
        pix, tri = ctx.saved_tensors
        e, rel, sg = _edge(pix, tri, ctx.k)
        ge = (g * sg[:, 0] * sg[:, 1] * sg[:, 2])[:, None] * ctx.k * (1 - sg)
        perp = torch.stack([-e[..., 1], e[..., 0]], -1)
        gpix = torch.einsum("tip,tid->pd", ge, perp)
        to = torch.stack([(ge * rel[..., 1]).sum(-1), -(ge * rel[..., 0]).sum(-1)], -1)
        frm = -to - ge.sum(-1, keepdim=True) * perp
        return gpix, frm + to.roll(1, 1), None


def soft_coverage(pix, tri, k=4.0):
    return TriangleCoverage.apply(pix, tri, k)
