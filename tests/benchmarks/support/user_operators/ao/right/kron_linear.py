import torch
import torch.nn as nn


class _KronMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, A, B):
        # (A kron B) vec(X) = vec(A X B^T), rows first
        X = x.reshape(-1, A.shape[1], B.shape[1])
        ctx.save_for_backward(x, A, B)
        return (A @ X @ B.T).flatten(1)

    @staticmethod
    def backward(ctx, g):
        x, A, B = ctx.saved_tensors
        X = x.reshape(-1, A.shape[1], B.shape[1])
        G = g.reshape(-1, A.shape[0], B.shape[0])
        gX = gA = gB = None
        if ctx.needs_input_grad[0]:
            gX = torch.einsum("pi,bpq,qj->bij", A, G, B).reshape(x.shape)
        if ctx.needs_input_grad[1]:
            gA = torch.einsum("bpq,bij,qj->pi", G, X, B)
        if ctx.needs_input_grad[2]:
            gB = torch.einsum("bpq,bij,pi->qj", G, X, A)
        return gX, gA, gB


class KroneckerLinear(nn.Module):
    def __init__(self, in_shape, out_shape, bias=True):
        super().__init__()
        self.A = nn.Parameter(torch.empty(out_shape[0], in_shape[0]))
        self.B = nn.Parameter(torch.empty(out_shape[1], in_shape[1]))
        self.b = nn.Parameter(torch.zeros(out_shape[0] * out_shape[1])) if bias else None
        for w in (self.A, self.B):
            nn.init.orthogonal_(w)

    def forward(self, x):
        y = _KronMul.apply(x, self.A, self.B)
        return y if self.b is None else y + self.b
