import torch
import torch.nn as nn
import torch.nn.functional as F


class _ABN(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, mean, var, training, eps, slope):
        ctx.save_for_backward(x, weight, bias, mean, var)
        ctx.conf = training, eps, slope
        return F.leaky_relu(_ABN.affine(x, weight, bias, mean, var, eps)[0], slope)

    @staticmethod
    def affine(x, weight, bias, mean, var, eps):
        shape = (1, -1) + (1,) * (x.dim() - 2)
        xhat = (x - mean.view(shape)) * torch.rsqrt(var + eps).view(shape)
        return xhat * weight.view(shape) + bias.view(shape), xhat, shape

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        x, weight, bias, mean, var = ctx.saved_tensors
        training, eps, slope = ctx.conf
        y, xhat, shape = _ABN.affine(x, weight, bias, mean, var, eps)
        dy = torch.where(y > 0, dy, dy * slope)
        dims = [0] + list(range(2, x.dim()))
        dbias = dy.sum(dims)
        dweight = (dy * xhat).sum(dims)
        dx = dy
        if training:
            count = x.numel() // x.shape[1]
            dx = dy - (dbias.view(shape) + xhat * dweight.view(shape)) / count
        dx = dx * (weight * torch.rsqrt(var + eps)).view(shape)
        return dx, dweight, dbias, None, None, None, None, None


class ABN(nn.Module):
    """Activated Batch Normalization

    This gathers a batch normalization and a leaky ReLU in a single module.

    Args:
        num_features: number of feature channels in the input and output
        eps: small constant to prevent numerical issues
        momentum: momentum factor applied to compute running statistics
        activation_param: negative slope

    Shape: (N, C, *) to the same
    """

    def __init__(self, num_features, eps=1e-5, momentum=0.1, activation_param=0.01):
        super().__init__()
        self.eps, self.momentum, self.activation_param = eps, momentum, activation_param
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, x):
        if x.dim() < 2 or x.shape[1] != self.weight.shape[0]:
            raise ValueError(f"expected (N, {self.weight.shape[0]}, *) but got {tuple(x.shape)}")
        mean, var = self.running_mean, self.running_var
        if self.training:
            dims = [0] + list(range(2, x.dim()))
            count = x.numel() // x.shape[1]
            if count < 2:
                raise ValueError("more than one value per channel is needed in training")
            mean = x.detach().mean(dims)
            var = x.detach().var(dims, unbiased=False)
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var * count / (count - 1), self.momentum)
        else:
            mean, var = mean.clone(), var.clone()
        return _ABN.apply(x, self.weight, self.bias, mean, var, self.training, self.eps, self.activation_param)

    def extra_repr(self):
        return f"{self.weight.shape[0]}, eps={self.eps}, momentum={self.momentum}, slope={self.activation_param}"
