import torch
from torch import nn


class _TuckerContract(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, U, V, core):
        z = torch.einsum("bij,ia,jc->bac", x, U, V)
        ctx.save_for_backward(x, U, V, core)
        return torch.einsum("bac,aco->bo", z, core)

    @staticmethod
    def backward(ctx, gy):
        x, U, V, core = ctx.saved_tensors
        xu = torch.einsum("bij,ia->baj", x, U)
        gz = torch.einsum("bo,aco->bac", gy, core)
        g_core = torch.einsum("baj,jc,bo->cao", xu, V, gy).reshape(core.shape)
        g_v = torch.einsum("bac,baj->jc", gz, xu)
        g_xu = torch.einsum("bac,jc->baj", gz, V)
        g_u = torch.einsum("baj,bij->ia", g_xu, x)
        g_x = torch.einsum("baj,ia->bij", g_xu, U)
        return g_x, g_u, g_v, g_core


class TuckerRegression(nn.Module):
    """Linear map of matrices to vectors with a weight tensor in Tucker form.

    Args:
        in_shape: (I, J) of the input matrices
        ranks: (a, c)
        out_features: width of the output
    """

    def __init__(self, in_shape, ranks, out_features, bias=True):
        super().__init__()
        self.U = nn.Parameter(torch.randn(in_shape[0], ranks[0]) / in_shape[0] ** 0.5)
        self.V = nn.Parameter(torch.randn(in_shape[1], ranks[1]) / in_shape[1] ** 0.5)
        self.core = nn.Parameter(torch.randn(*ranks, out_features) * 0.1)
        if bias:
            self.bias = nn.Parameter(torch.zeros(out_features))
        else:
            self.register_parameter("bias", None)

    def forward(self, x):
        y = _TuckerContract.apply(x, self.U, self.V, self.core)
        return y if self.bias is None else y + self.bias
