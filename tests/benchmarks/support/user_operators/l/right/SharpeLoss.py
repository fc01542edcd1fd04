import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class SharpeLoss(Function):
    """Negative Sharpe ratio of a portfolio, -(mean - rf) / std.

    weights: (A,), returns: (T, A), rf: risk-free return per period (float),
    ddof: degrees of freedom taken off in the deviation.  Portfolio returns must not be constant.
    The gradients are worked out in the forward pass, as T x A is small.
    """

    @staticmethod
    def forward(ctx, weights, returns, rf=0.0, ddof=1):
        T = returns.shape[0]
        assert T > ddof
        port = returns @ weights
        mean = port.mean()
        centred = port - mean
        std = (centred.pow(2).sum() / (T - ddof)).sqrt()
        ratio = (mean - rf) / std
        # d ratio / d port
        d_port = 1 / (T * std) - ratio * centred / ((T - ddof) * std ** 2)
        g_w = -(returns.t() @ d_port)
        g_r = -torch.outer(d_port, weights)
        ctx.save_for_backward(g_w, g_r)
        return -ratio

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        g_w, g_r = ctx.saved_tensors
        return grad_output * g_w, grad_output * g_r, None, None


if __name__ == "__main__":
    R = 0.01 * torch.randn(250, 5) + 0.001
    w = torch.full((5,), 0.2, requires_grad=True)
    opt = torch.optim.SGD([w], lr=0.1)
    for step in range(20):
        loss = SharpeLoss.apply(w / w.sum(), R)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(loss.item())
