# minGRU ("Were RNNs all we needed?"): the gates do not see the hidden state
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class MinGRUScan(Function):
    """(gate logits, candidates, h0) -> (all states, last state)

    gate, cand: (B, T, D); h0: (B, D)
    h_t = (1 - z_t) h_{t-1} + z_t c_t,   z = sigmoid(gate)
    """

    @staticmethod
    def forward(ctx, gate, cand, h0):
        z = torch.sigmoid(gate)
        hs = torch.empty_like(cand)
        h = h0
        for t in range(cand.shape[1]):
            h = torch.lerp(h, cand[:, t], z[:, t])
            hs[:, t] = h
        ctx.save_for_backward(z, cand, h0, hs)
        return hs, h.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_hs, grad_last):
        z, cand, h0, hs = ctx.saved_tensors
        d_gate = torch.empty_like(z)
        d_cand = torch.empty_like(cand)
        dh = grad_last
        for t in reversed(range(cand.shape[1])):
            dh = dh + grad_hs[:, t]
            prev = hs[:, t - 1] if t > 0 else h0
            zt = z[:, t]
            d_gate[:, t] = dh * (cand[:, t] - prev) * zt * (1 - zt)
            d_cand[:, t] = dh * zt
            dh = dh * (1 - zt)
        return d_gate, d_cand, dh


def run(gate, cand, h0=None):
    if h0 is None:
        h0 = cand.new_zeros(cand.shape[0], cand.shape[2])
    return MinGRUScan.apply(gate, cand, h0)
