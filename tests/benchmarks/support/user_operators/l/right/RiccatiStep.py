"""One step of the discrete-time Riccati recursion, for differentiable LQR."""
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _sym(m):
    return 0.5 * (m + m.mT)


def lqr_gain(A, B, P, R):
    return torch.linalg.solve(R + B.mT @ P @ B, B.mT @ P @ A)


class RiccatiStep(Function):
    """P_t = Q + A' P (A - B K),  K = (R + B' P B)^-1 B' P A

    A: (..., n, n), B: (..., n, m), Q and P: (..., n, n), R: (..., m, m), equal batch axes.
    P and R are symmetrised first; R + B' P B must be invertible.
    """

    @staticmethod
    def forward(ctx, A, B, P, Q, R):
        Ps, Rs = _sym(P), _sym(R)
        K = lqr_gain(A, B, Ps, Rs)
        closed = A - B @ K
        ctx.save_for_backward(Ps, K, closed)
        return Q + A.mT @ Ps @ closed

    @staticmethod
    @once_differentiable
    def backward(ctx, G):
        P, K, closed = ctx.saved_tensors
        H = G + G.mT
        gA = P @ closed @ H
        gB = -gA @ K.mT
        gP = _sym(closed @ G @ closed.mT)
        gR = _sym(K @ G @ K.mT)
        return gA, gB, gP, G, gR


def lqr_value(A, B, Q, R, horizon):
    """Cost-to-go matrix after `horizon` backward steps from P = Q."""
    P = Q
    for _ in range(horizon):
        P = RiccatiStep.apply(A, B, P, Q, R)
    return P
