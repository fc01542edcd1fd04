import torch


class CotangentWeights(torch.autograd.Function):
    # V (n, 3), F (m, 3) long -> cotangents (m, 3) of the angles at the corners; no degenerate faces
    @staticmethod
    def forward(ctx, V, F):
        out = []
        for k in range(3):
            a = V[F[:, (k + 1) % 3]] - V[F[:, k]]
            b = V[F[:, (k + 2) % 3]] - V[F[:, k]]
            n = torch.linalg.cross(a, b)
            out.append((a * b).sum(1) / n.norm(dim=1))
        ctx.save_for_backward(V, F)
        return torch.stack(out, 1)

    @staticmethod
    def backward(ctx, g):
        V, F = ctx.saved_tensors
        gV = torch.zeros_like(V)
        for k in range(3):
            i, j, l = F[:, k], F[:, (k + 1) % 3], F[:, (k + 2) % 3]
            a, b = V[j] - V[i], V[l] - V[i]
            n = torch.linalg.cross(a, b)
            s = n.norm(dim=1, keepdim=True)
            d = (a * b).sum(1, keepdim=True)
            gk = g[:, k : k + 1]
            ga = gk * (b / s - d * torch.linalg.cross(b, n) / s**3)
            gb = gk * (a / s - d * torch.linalg.cross(a, n) / s**3)
            gV = gV.index_add(0, j, ga).index_add(0, l, gb).index_add(0, i, -ga - gb)
        return gV, None
