import torch


class HypergraphPropagate(torch.autograd.Function):
    """D^-1/2 H W B^-1 H^T D^-1/2 X  (HGNN), D = diag(H w), B = diag(H^T 1).

    x: (N, C), w: (E,) > 0, H: (N, E) binary incidence; every node lies in an edge.
    """

    @staticmethod
    def forward(ctx, x, w, H):
        H = H.to(x.dtype)
        ctx.save_for_backward(x, w, H)
        s = (H @ w).rsqrt()[:, None]
        return s * (H @ ((w / H.sum(0))[:, None] * (H.T @ (s * x))))

    @staticmethod
    def backward(ctx, g):
        x, w, H = ctx.saved_tensors
        b = H.sum(0)
        s = (H @ w).rsqrt()[:, None]
        wb = (w / b)[:, None]
        msg, back = H.T @ (s * x), H.T @ (s * g)
        up = H @ (wb * back)
        gx = s * up
        gw = (msg * back).sum(1) / b
        gs = (g * (H @ (wb * msg)) + x * up).sum(1)
        gw = gw - H.T @ (gs * s[:, 0] ** 3) / 2
        return gx, gw, None
