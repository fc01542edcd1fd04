import torch


class _BiotSavart(torch.autograd.Function):
    @staticmethod
    def _geometry(points, wire):
        dl = (wire[1:] - wire[:-1])[None]
        r = points[:, None] - 0.5 * (wire[1:] + wire[:-1])
        return dl.expand_as(r), r, r.norm(dim=-1, keepdim=True)

    @staticmethod
    def forward(ctx, points, wire, current):
        ctx.save_for_backward(points, wire, current)
        dl, r, d = _BiotSavart._geometry(points, wire)
        return current * (torch.linalg.cross(dl, r) / d ** 3).sum(1)

    @staticmethod
    def backward(ctx, grad):
        points, wire, current = ctx.saved_tensors
        dl, r, d = _BiotSavart._geometry(points, wire)
        g = grad[:, None].expand_as(r)
        c = torch.linalg.cross(dl, r)
        g_current = (g * c / d ** 3).sum()
        g_dl = (current * torch.linalg.cross(r, g) / d ** 3).sum(0)
        g_r = current * (torch.linalg.cross(g, dl) / d ** 3 - 3 * (g * c).sum(-1, keepdim=True) * r / d ** 5)
        g_mid = -g_r.sum(0)
        g_wire = torch.zeros_like(wire)
        g_wire[1:] += 0.5 * g_mid + g_dl
        g_wire[:-1] += 0.5 * g_mid - g_dl
        return g_r.sum(1), g_wire, g_current


def biot_savart(points, wire, current):
    return _BiotSavart.apply(points, wire, current)
