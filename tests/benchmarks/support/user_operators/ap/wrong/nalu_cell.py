import torch
import torch.nn as nn


class NALUFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w_hat, m_hat, g_w, eps):
        ctx.eps = eps
        ctx.save_for_backward(x, w_hat, m_hat, g_w)
        W = torch.tanh(w_hat) * torch.sigmoid(m_hat)
        gate = torch.sigmoid(x @ g_w.t())
        return gate * (x @ W.t()) + (1 - gate) * torch.exp(torch.log(x.abs() + eps) @ W.t())

    @staticmethod
    def backward(ctx, grad):
        x, w_hat, m_hat, g_w = ctx.saved_tensors
        th, sg = torch.tanh(w_hat), torch.sigmoid(m_hat)
        W = th * sg
        lx = torch.log(x.abs() + ctx.eps)
        gate = torch.sigmoid(x @ g_w.t())
        a, m = x @ W.t(), torch.exp(lx @ W.t())
        ga, gm = grad * gate, grad * (1 - gate) * m
        gz = grad * (a - m) * gate * (1 - gate)
        gW = ga.t() @ x + gm.t() @ lx
        gx = ga @ W + (gm @ W) / (x.abs() + ctx.eps) + gz @ g_w
        return gx, gW * (1 - th ** 2) * sg, gW * th * sg * (1 - sg), gz.t() @ x, None


class NALU(nn.Module):
    """Neural arithmetic logic unit, (B, in) -> (B, out)"""

    def __init__(self, in_features, out_features, eps=1e-7):
        super().__init__()
        self.eps = eps
        self.W_hat = nn.Parameter(torch.empty(out_features, in_features))
        self.M_hat = nn.Parameter(torch.empty(out_features, in_features))
        self.G = nn.Parameter(torch.empty(out_features, in_features))
        for p in self.parameters():
            nn.init.xavier_uniform_(p)

    def forward(self, x):
        return NALUFunction.apply(x, self.W_hat, self.M_hat, self.G, self.eps)
