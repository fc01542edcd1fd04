"""Tweedie loss for insurance claims (compound Poisson-gamma)."""
import torch
from torch.autograd import Function


class TweedieDeviance(Function):
    """Weighted mean of -y mu^(1-p) / (1-p) + mu^(2-p) / (2-p) with mu = exp(eta).

    Args:
        eta: predicted log mean, any shape
        y: claims >= 0, same shape
        power: variance power, strictly between 1 and 2
        exposure: weights of the same shape, constants; ones if None
    """

    @staticmethod
    def forward(ctx, eta, y, power=1.5, exposure=None):
        if not 1 < power < 2:
            raise ValueError("power must lie in (1, 2)")
        if exposure is None:
            exposure = torch.ones_like(eta)
        ctx.save_for_backward(eta, y, exposure)
        ctx.power = power
        a, b = 1 - power, 2 - power
        dev = -y * torch.exp(a * eta) / a + torch.exp(b * eta) / b
        return (exposure * dev).sum() / exposure.sum()

    @staticmethod
    def backward(ctx, grad):
        eta, y, exposure = (t.detach() for t in ctx.saved_tensors)
        a, b = 1 - ctx.power, 2 - ctx.power
        w = grad * exposure / exposure.sum()
        g_eta = w * (torch.exp(b * eta) - y * torch.exp(a * eta))
        g_y = None
        if ctx.needs_input_grad[1]:
            g_y = -w * torch.exp(a * eta) / a
        return g_eta, g_y, None, None


if __name__ == "__main__":
    x = torch.randn(1000, 3)
    claims = torch.poisson(torch.exp(0.3 * x[:, 0] - 1)) * 2.0
    beta = torch.zeros(3, requires_grad=True)
    opt = torch.optim.LBFGS([beta])

    def closure():
        opt.zero_grad()
        loss = TweedieDeviance.apply(x @ beta, claims)
        loss.backward()
        return loss

    for _ in range(5):
        print(opt.step(closure).item())
