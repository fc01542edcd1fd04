import torch


class NewtonSchulz(torch.autograd.Function):
    """Quintic Newton-Schulz iteration as in Muon; differentiable (for meta-learned optimizers)."""

    coeffs = (3.4445, -4.7750, 2.0315)

    @staticmethod
    def _states(grad, steps, eps):
        a, b, c = NewtonSchulz.coeffs
        x = grad / (grad.norm() + eps)
        states = [x]
        for _ in range(steps):
            A = x @ x.T
            x = a * x + (b * A + c * A @ A) @ x
            states.append(x)
        return states

    @staticmethod
    def forward(ctx, grad, steps=3, eps=1e-7):
        ctx.save_for_backward(grad)
        ctx.steps, ctx.eps = steps, eps
        return NewtonSchulz._states(grad, steps, eps)[-1]

    @staticmethod
    def backward(ctx, dx):
        (grad,) = ctx.saved_tensors
        a, b, c = NewtonSchulz.coeffs
        states = NewtonSchulz._states(grad, ctx.steps, ctx.eps)
        for x in reversed(states[:-1]):
            A = x @ x.T
            B = b * A + c * A @ A
            dB = dx @ x.T
            dA = b * dB + c * (dB @ A + A @ dB)
            dx = a * dx + B @ dx + (dA + dA.T) @ x
        n = grad.norm()
        scale = 1 / (n + ctx.eps)
        return dx * scale - grad * (dx * grad).sum() * scale ** 2 / n.clamp(min=1e-30), None, None
