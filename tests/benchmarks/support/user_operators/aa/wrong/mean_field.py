import torch
from torch import nn


class _BilateralMessage(torch.autograd.Function):
    """Normalised Gaussian message passing between all pixels, self excluded.

    Q: (L, N), feats: (N, D), theta: kernel width
    """

    @staticmethod
    def affinity(feats, theta):
        diff = feats[:, None] - feats[None]
        K = torch.exp(-diff.square().sum(-1) / (2 * theta ** 2))
        off = 1 - torch.eye(feats.shape[0], dtype=feats.dtype, device=feats.device)
        return K * off, diff

    @staticmethod
    def forward(ctx, Q, feats, theta):
        ctx.save_for_backward(Q, feats)
        ctx.theta = theta
        K, _ = _BilateralMessage.affinity(feats, theta)
        return Q @ K / K.sum(0)

    @staticmethod
    def backward(ctx, g):
        Q, feats = ctx.saved_tensors
        theta = ctx.theta
        K, diff = _BilateralMessage.affinity(feats, theta)
        Z = K.sum(0)
        gz = g / Z
        gQ = gz @ K
        gf = None
        if ctx.needs_input_grad[1]:
            msg = Q @ K / Z
            gK = Q.t() @ gz - (gz * msg).sum(0)
            A = gK * K
            A = 2 * A
            gf = -(A[..., None] * diff).sum(1) / theta ** 2
        return gQ, gf, None


class MeanField(nn.Module):
    """CRF inference with a trainable label compatibility; unary (L, N), feats (N, D) -> Q (L, N)."""

    def __init__(self, labels, theta=1.0, steps=2):
        super().__init__()
        self.compat = nn.Parameter(1 - torch.eye(labels))
        self.theta, self.steps = theta, steps

    def forward(self, unary, feats):
        Q = (-unary).softmax(0)
        for _ in range(self.steps):
            Q = (-unary - self.compat @ _BilateralMessage.apply(Q, feats, self.theta)).softmax(0)
        return Q
