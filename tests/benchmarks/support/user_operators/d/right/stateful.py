"""Layers with parameters or running state, and the functions under them."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class _SpectralScale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, W, u, v):
        ctx.save_for_backward(W, u, v)
        return W / torch.dot(u, W @ v)

    @staticmethod
    def backward(ctx, g):
        W, u, v = ctx.saved_tensors
        sigma = torch.dot(u, W @ v)
        gW = (g - (g * W).sum() / sigma * torch.outer(u, v)) / sigma
        return gW, None, None


class SpectralLinear(nn.Module):
    """Linear layer divided by its largest singular value (power iteration while training)."""

    def __init__(self, in_features, out_features, n_iter=1):
        super().__init__()
        self.n_iter = n_iter
        self.weight = nn.Parameter(torch.randn(out_features, in_features) / in_features ** 0.5)
        self.bias = nn.Parameter(torch.zeros(out_features))
        self.register_buffer("u", F.normalize(torch.randn(out_features), dim=0))
        self.register_buffer("v", F.normalize(torch.randn(in_features), dim=0))
        self._power(15)

    @torch.no_grad()
    def _power(self, n):
        for _ in range(n):
            self.v.copy_(F.normalize(self.weight.t() @ self.u, dim=0))
            self.u.copy_(F.normalize(self.weight @ self.v, dim=0))

    def forward(self, x):
        if self.training:
            self._power(self.n_iter)
        w = _SpectralScale.apply(self.weight, self.u.clone(), self.v.clone())
        return x @ w.t() + self.bias


class _RunningNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, run_mean, run_var, training, momentum, eps):
        batch_stats = training or run_mean is None
        if batch_stats:
            mean = x.mean(0)
            var = x.var(0, unbiased=False)
            if run_mean is not None:
                n = x.shape[0]
                run_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
                run_var.mul_(1 - momentum).add_(var * n / max(n - 1, 1), alpha=momentum)
        else:
            mean, var = run_mean.clone(), run_var
        rstd = torch.rsqrt(var + eps)
        ctx.save_for_backward(x, weight, mean, rstd)
        ctx.batch_stats = batch_stats
        return (x - mean) * rstd * weight + bias

    @staticmethod
    def backward(ctx, g):
        x, weight, mean, rstd = ctx.saved_tensors
        xhat = (x - mean) * rstd
        gb = g.sum(0)
        gw = (g * xhat).sum(0)
        if ctx.batch_stats:
            gx = weight * rstd * (g - g.mean(0) - xhat * (g * xhat).mean(0))
        else:
            gx = g * weight * rstd
        return gx, gw, gb, None, None, None, None, None


class RunningNorm(nn.Module):
    def __init__(self, num_features, momentum=0.1, eps=1e-5, track=True):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("run_mean", torch.zeros(num_features) if track else None)
        self.register_buffer("run_var", torch.ones(num_features) if track else None)

    def forward(self, x):
        assert x.dim() == 2
        return _RunningNorm.apply(x, self.weight, self.bias, self.run_mean, self.run_var,
                                  self.training, self.momentum, self.eps)


class WeightNorm(torch.autograd.Function):
    """w = g * v / ||v||, one norm per output row; v (out, in), g (out,)."""

    @staticmethod
    def forward(ctx, v, g):
        assert v.dim() == 2 and g.shape == v.shape[:1]
        ctx.save_for_backward(v, g)
        return v * (g / v.norm(dim=1)).unsqueeze(1)

    @staticmethod
    def backward(ctx, grad_w):
        v, g = ctx.saved_tensors
        norm = v.norm(dim=1, keepdim=True)
        u = v / norm
        along = (grad_w * u).sum(dim=1, keepdim=True)
        grad_v = grad_g = None
        if ctx.needs_input_grad[0]:
            grad_v = g.unsqueeze(1) / norm * (grad_w - along * u)
        if ctx.needs_input_grad[1]:
            grad_g = along.squeeze(1)
        return grad_v, grad_g


class MinGRUStep(torch.autograd.Function):
    """h' = (1 - z) h + z c with z = sigmoid(gate + shift)."""

    @staticmethod
    def forward(h, gate, c, shift=0.0):
        z = torch.sigmoid(gate + shift)
        return h + z * (c - h)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:3])
        ctx.shift = inputs[3] if len(inputs) > 3 else 0.0
        ctx.extra = len(inputs) - 3

    @staticmethod
    def backward(ctx, grad):
        h, gate, c = ctx.saved_tensors
        z = torch.sigmoid(gate + ctx.shift)
        d_gate = grad * (c - h) * z * (1 - z)
        return (grad * (1 - z), d_gate, grad * z) + (None,) * ctx.extra


class GroupNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, num_groups=1, eps=1e-5):
        N, C = x.shape[:2]
        if C % num_groups:
            raise ValueError("channels must be divisible by num_groups")
        xg = x.reshape(N, num_groups, -1)
        mean = xg.mean(-1, keepdim=True)
        rstd = (xg.var(-1, unbiased=False, keepdim=True) + eps).rsqrt()
        ctx.save_for_backward(x, weight, mean, rstd)
        ctx.num_groups = num_groups
        y = ((xg - mean) * rstd).reshape(N, C, -1)
        return (y * weight[:, None] + bias[:, None]).reshape(x.shape)

    @staticmethod
    def backward(ctx, grad_y):
        x, weight, mean, rstd = ctx.saved_tensors
        N, C = x.shape[:2]
        xhat = x.reshape(N, ctx.num_groups, -1)
        xhat = xhat.sub(mean).mul(rstd)
        gy = grad_y.reshape(N, C, -1)
        g_weight = (gy * xhat.reshape(N, C, -1)).sum((0, 2))
        g_bias = gy.sum((0, 2))
        gx = (gy * weight[:, None]).reshape(N, ctx.num_groups, -1)
        gx = gx - gx.mean(-1, keepdim=True) - xhat * (gx * xhat).mean(-1, keepdim=True)
        return (gx * rstd).reshape(x.shape), g_weight, g_bias, None, None


class _TempSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, log_tau):
        p = torch.softmax(logits * torch.exp(-log_tau), dim=-1)
        ctx.save_for_backward(logits, log_tau, p)
        return p

    @staticmethod
    def backward(ctx, grad):
        logits, log_tau, p = ctx.saved_tensors
        t = torch.exp(-log_tau)
        gs = p * (grad - (grad * p).sum(-1, keepdim=True)) * t
        g_tau = -(gs * logits).sum()
        return gs, g_tau


class TemperatureHead(nn.Module):
    """Calibrated class probabilities; the temperature is kept as a logarithm."""

    def __init__(self, init_tau: float = 1.0):
        super().__init__()
        self.log_tau = nn.Parameter(torch.tensor(float(init_tau)).log())

    def forward(self, logits):
        return _TempSoftmax.apply(logits, self.log_tau)


class CenterLoss(torch.autograd.Function):
    """lam / B * sum_i |f_i - centers[label_i]|^2"""

    @staticmethod
    def forward(ctx, feat, centers, labels, lam=0.5):
        assert feat.shape[1] == centers.shape[1], "feature sizes differ"
        ctx.save_for_backward(feat, centers, labels)
        ctx.lam = lam
        return lam * (feat - centers[labels]).pow(2).sum() / feat.shape[0]

    @staticmethod
    def backward(ctx, grad_output):
        feat, centers, labels = ctx.saved_tensors
        gf = grad_output * 2 * ctx.lam / feat.shape[0] * (feat - centers[labels])
        gc = torch.zeros_like(centers).index_add(0, labels, -gf)
        return gf, gc, None, None


class ModReLU(torch.autograd.Function):
    """relu(|z| + b) * z / |z| for complex z (B, D) and a real bias b (D,)."""

    @staticmethod
    def forward(ctx, z, b, eps=1e-12):
        r = z.abs().clamp(min=eps)
        ctx.save_for_backward(z, b)
        ctx.eps = eps
        return z * (torch.relu(r + b) / r)

    @staticmethod
    def backward(ctx, grad):
        z, b = ctx.saved_tensors
        r = z.abs().clamp(min=ctx.eps)
        on = (r + b > 0).to(r.dtype)
        u = z / r
        radial = (grad * u.conj()).real * on
        gz = u * radial + (grad * on - u * radial) * ((r + b) / r)
        return gz, radial.sum(0), None


class EmaScan(torch.autograd.Function):
    """y_t = a * y_{t-1} + (1 - a) * x_t over axis 1; x (B, T, D), a (D,), h0 (B, D)."""

    @staticmethod
    def forward(ctx, x, a, h0):
        h, ys = h0, []
        for t in range(x.shape[1]):
            h = a * h + (1 - a) * x[:, t]
            ys.append(h)
        y = torch.stack(ys, dim=1)
        ctx.save_for_backward(x, a, h0, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, a, h0, y = ctx.saved_tensors
        prev = torch.cat([h0.unsqueeze(1), y[:, :-1]], dim=1)
        carry = torch.zeros_like(h0)
        ga = torch.zeros_like(a)
        gx = []
        for t in reversed(range(x.shape[1])):
            carry = carry + grad[:, t]
            ga = ga + (carry * (prev[:, t] - x[:, t])).sum(0)
            gx.append(carry * (1 - a))
            carry = carry * a
        return torch.stack(gx[::-1], dim=1), ga, carry


class _ScaledResidual(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, branch, gamma, keep_mask, keep_prob):
        m = torch.ones_like(x[..., :1]) if keep_mask is None else \
            keep_mask.to(x.dtype).view(-1, *[1] * (x.dim() - 1)) / keep_prob
        ctx.save_for_backward(branch, gamma, m)
        return x + m * gamma * branch

    @staticmethod
    def backward(ctx, grad):
        branch, gamma, m = ctx.saved_tensors
        gm = grad * m
        g_branch = gm * gamma
        g_gamma = (gm * branch).reshape(-1, gamma.numel()).sum(0)
        return grad, g_branch, g_gamma, None, None


class LayerScaleBlock(nn.Module):
    """x + gamma * mlp(x), samples with keep_mask False skip the branch."""

    def __init__(self, dim, init=0.1, keep_prob=0.8):
        super().__init__()
        self.keep_prob = keep_prob
        self.fc = nn.Linear(dim, dim)
        self.gamma = nn.Parameter(init * torch.ones(dim))

    def forward(self, x, keep_mask=None):
        branch = torch.tanh(self.fc(x))
        return _ScaledResidual.apply(x, branch, self.gamma, keep_mask, self.keep_prob)
