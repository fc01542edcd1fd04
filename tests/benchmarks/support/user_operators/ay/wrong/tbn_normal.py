import torch

cross = torch.linalg.cross


def _dot(a, b):
    return (a * b).sum(-1, keepdim=True)


class NormalMap(torch.autograd.Function):
    """Tangent-space normal mapping.

    Args:
        m: normal map texels in [-1, 1], (..., 3)
        N: unit vertex normals, (..., 3)
        T: tangents, orthogonalised against N here, (..., 3)
        hand: 1.0 or -1.0, handedness of the bitangent
    Returns:
        (..., 3), not renormalised
    """

    @staticmethod
    def forward(ctx, m, N, T, hand=1.0):
        ctx.save_for_backward(m, N, T)
        ctx.hand = hand
        t = T - _dot(T, N) * N
        t = t / t.norm(dim=-1, keepdim=True)
        b = hand * cross(N, t)
        return m[..., :1] * t + m[..., 1:2] * b + m[..., 2:] * N

    @staticmethod
    def backward(ctx, g):
        m, N, T = ctx.saved_tensors
        raw = T - _dot(T, N) * N
        ln = raw.norm(dim=-1, keepdim=True)
        t = raw / ln
        b = ctx.hand * cross(N, t)
        gm = torch.cat([_dot(g, t), _dot(g, b), _dot(g, N)], -1)
        gb = m[..., 1:2] * g
        gt = m[..., :1] * g + cross(gb, N)
        gN = m[..., 2:] * g + cross(t, gb)
        graw = (gt - t * _dot(t, gt)) / ln
        gT = graw - _dot(N, graw) * N
        gN = gN - _dot(T, N) * graw - _dot(N, graw) * T
        return gm, gN, gT, None
