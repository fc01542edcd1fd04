import torch
from torch import nn

EQ = {
    "outgoing": ("ikc,jkc->ijc", "ijc,jkc->ikc", "ijc,ikc->jkc"),
    "incoming": ("kic,kjc->ijc", "ijc,kjc->kic", "ijc,kic->kjc"),
}


class GatedTriangle(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, mask, w_a, g_a, w_b, g_b, mode):
        ctx.save_for_backward(z, mask, w_a, g_a, w_b, g_b)
        ctx.mode = mode
        m = mask[..., None]
        a = (z @ w_a.t()) * torch.sigmoid(z @ g_a.t()) * m
        b = (z @ w_b.t()) * torch.sigmoid(z @ g_b.t()) * m
        return torch.einsum(EQ[mode][0], a, b)

    @staticmethod
    def backward(ctx, grad):
        z, mask, w_a, g_a, w_b, g_b = ctx.saved_tensors
        _, eq_a, eq_b = EQ[ctx.mode]
        m = mask[..., None]
        pa, sa = z @ w_a.t(), torch.sigmoid(z @ g_a.t())
        pb, sb = z @ w_b.t(), torch.sigmoid(z @ g_b.t())
        da = torch.einsum(eq_a, grad, pb * sb * m) * m
        db = torch.einsum(eq_b, grad, pa * sa * m) * m
        dpa, dga = da * sa, da * pa * sa * (1 - sa)
        dpb, dgb = db * sb, db * pb * sb * (1 - sb)
        dz = dpa @ w_a + dga @ g_a + dpb @ w_b + dgb @ g_b
        dws = [torch.einsum("ijo,ijc->oc", d, z) for d in (dpa, dga, dpb, dgb)]
        return (dz, None, *dws, None)


class TriangleMultiplication(nn.Module):
    """Triangular multiplicative update of the pair representation z (N, N, C), mask (N, N)."""

    def __init__(self, dim, hidden, mode="outgoing"):
        super().__init__()
        assert mode in EQ
        self.mode = mode
        for name in ("left", "left_gate", "right", "right_gate"):
            setattr(self, name, nn.Parameter(torch.randn(hidden, dim) * dim ** -0.5))

    def forward(self, z, mask):
        return GatedTriangle.apply(z, mask, self.left, self.left_gate, self.right, self.right_gate, self.mode)
