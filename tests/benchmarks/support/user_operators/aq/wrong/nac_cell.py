import torch


class NACFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w_hat, m_hat):
        ctx.save_for_backward(x, w_hat, m_hat)
        return x @ (torch.tanh(w_hat) * torch.sigmoid(m_hat)).t()

    @staticmethod
    def backward(ctx, dy):
        x, w_hat, m_hat = ctx.saved_tensors
        th, sg = torch.tanh(w_hat), torch.sigmoid(m_hat)
        dx = dw = dm = None
        if ctx.needs_input_grad[0]:
            dx = dy @ (th * sg)
        if any(ctx.needs_input_grad[1:]):
            dW = dy.flatten(0, -2).t() @ x.flatten(0, -2)
            dw = (dW * sg * (1 - th ** 2)).t()
            dm = dW * th * sg * (1 - sg)
        return dx, dw, dm


class NAC(torch.nn.Module):
    """Neural accumulator (Trask et al. 2018). x: (..., n_in), at least 2-D."""

    def __init__(self, n_in: int, n_out: int):
        super().__init__()
        self.w_hat = torch.nn.Parameter(torch.empty(n_out, n_in))
        self.m_hat = torch.nn.Parameter(torch.empty(n_out, n_in))
        torch.nn.init.xavier_uniform_(self.w_hat)
        torch.nn.init.xavier_uniform_(self.m_hat)

    def forward(self, x):
        return NACFunction.apply(x, self.w_hat, self.m_hat)
