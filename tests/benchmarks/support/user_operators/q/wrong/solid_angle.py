import torch


class SolidAngle(torch.autograd.Function):
    """Signed solid angle of triangles (..., 3, 3) seen from the origin (van Oosterom & Strackee)."""

    @staticmethod
    def forward(ctx, tri):
        ctx.save_for_backward(tri)
        a, b, c = tri.unbind(-2)
        la, lb, lc = tri.norm(dim=-1).unbind(-1)
        num = (a * torch.linalg.cross(b, c)).sum(-1)
        den = la * lb * lc + (a * b).sum(-1) * lc + (b * c).sum(-1) * la + (c * a).sum(-1) * lb
        return 2 * torch.atan2(num, den)

    @staticmethod
    def backward(ctx, g):
        tri, = ctx.saved_tensors
        a, b, c = tri.unbind(-2)
        la, lb, lc = (t.norm(dim=-1, keepdim=True) for t in (a, b, c))
        ab, bc, ca = ((u * v).sum(-1, keepdim=True) for u, v in ((a, b), (b, c), (c, a)))
        num = (a * torch.linalg.cross(b, c)).sum(-1, keepdim=True)
        den = la * lb * lc + ab * lc + bc * la + ca * lb
        k = 2 * g.unsqueeze(-1) / (num * num + den * den)
        gn, gd = k * den, -k * num
        ga = gn * torch.linalg.cross(b, c) + gd * (a / la * (lb * lc + bc) + b * lc + c * lb)
        gb = gn * torch.linalg.cross(a, c) + gd * (b / lb * (la * lc + ca) + a * lc + c * la)
        gc = gn * torch.linalg.cross(a, b) + gd * (c / lc * (la * lb + ab) + b * la + a * lb)
        return torch.stack([ga, gb, gc], -2)
