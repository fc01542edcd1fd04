import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function


class SLSTMScan(Function):
    """sLSTM without recurrent weights: exponential input gate, sigmoid forget gate, normaliser, stabiliser.

    z, i, f, o (B, T, D) pre-activations -> h (B, T, D). h does not depend on the stabiliser m.
    """

    @staticmethod
    def _replay(z, i, f, o):
        c = n = m = torch.zeros_like(z[:, 0])
        steps = []
        for t in range(z.size(1)):
            logf = F.logsigmoid(f[:, t])
            m_new = torch.maximum(logf + m, i[:, t]).detach()
            fs, is_ = torch.exp(logf + m - m_new), torch.exp(i[:, t] - m_new)
            zt = torch.tanh(z[:, t])
            steps.append((c, n, fs, is_, zt))
            c, n, m = fs * c + is_ * zt, fs * n + is_, m_new
            steps[-1] += (c, n)
        return steps

    @staticmethod
    def forward(ctx, z: Tensor, i: Tensor, f: Tensor, o: Tensor) -> Tensor:
        ctx.save_for_backward(z, i, f, o)
        steps = SLSTMScan._replay(z, i, f, o)
        return torch.sigmoid(o) * torch.stack([s[5] / s[6] for s in steps], 1)

    @staticmethod
    def backward(ctx, g: Tensor):
        z, i, f, o = ctx.saved_tensors
        steps = SLSTMScan._replay(z, i, f, o)
        so = torch.sigmoid(o)
        do = g * so * (1 - so) * torch.stack([s[5] / s[6] for s in steps], 1)
        dc_next = dn_next = torch.zeros_like(z[:, 0])
        dz, di, df = [], [], []
        for t in reversed(range(z.size(1))):
            c_prev, n_prev, fs, is_, zt, c, n = steps[t]
            gh = g[:, t] * so[:, t]
            dc = dc_next + gh / n
            dn = dn_next - gh * c / (n * n)
            dz.append(dc * is_ * (1 - zt * zt))
            di.append(is_ * (dc * zt + dn))
            df.append(fs * (dc * c_prev + dn * n_prev) * torch.sigmoid(-f[:, t]))
            dc_next = dc * fs
            dn_next = dn
        return (*(torch.stack(d[::-1], 1) for d in (dz, di, df)), do)
