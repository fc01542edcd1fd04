import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _GRUCellFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, h, w_ih, w_hh, b_ih, b_hh):
        i_r, i_z, i_n = (x @ w_ih.t() + b_ih).chunk(3, 1)
        h_r, h_z, h_n = (h @ w_hh.t() + b_hh).chunk(3, 1)
        r = torch.sigmoid(i_r + h_r)
        z = torch.sigmoid(i_z + h_z)
        n = torch.tanh(i_n + r * h_n)
        ctx.save_for_backward(x, h, w_ih, w_hh, r, z, n, h_n)
        return (1 - z) * n + z * h

    @staticmethod
    @once_differentiable
    def backward(ctx, dh_next):
        x, h, w_ih, w_hh, r, z, n, h_n = ctx.saved_tensors
        dn = dh_next * (1 - z) * (1 - n * n)
        dz = dh_next * (h - n) * z * (1 - z)
        dr = dn * h_n * r * (1 - r)
        d_in = torch.cat([dr, dz, dn], 1)
        d_hid = torch.cat([dr, dz, dn * r], 1)
        dx = d_in @ w_ih
        dh = d_hid @ w_hh + dh_next * z
        return dx, dh, d_in.t() @ x, d_hid.t() @ h, d_in.sum(0), d_hid.sum(0)


class GRUCell(nn.Module):
    """Gated recurrent unit with torch's parametrisation: (B, I), (B, H) -> (B, H)"""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.hidden_size = hidden_size
        bound = hidden_size ** -0.5
        self.weight_ih = nn.Parameter(torch.empty(3 * hidden_size, input_size).uniform_(-bound, bound))
        self.weight_hh = nn.Parameter(torch.empty(3 * hidden_size, hidden_size).uniform_(-bound, bound))
        self.bias_ih = nn.Parameter(torch.empty(3 * hidden_size).uniform_(-bound, bound))
        self.bias_hh = nn.Parameter(torch.empty(3 * hidden_size).uniform_(-bound, bound))

    def forward(self, x, h=None):
        if h is None:
            h = x.new_zeros(x.shape[0], self.hidden_size)
        return _GRUCellFn.apply(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
