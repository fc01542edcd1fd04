import torch


class SoftplusBeta(torch.autograd.Function):
    """Softplus with sharpness ``beta``, linear above ``threshold`` as in torch.nn.Softplus."""

    @staticmethod
    def forward(ctx, input, beta=1.0, threshold=20.0):
        ctx.save_for_backward(input)
        ctx.beta = beta
        ctx.threshold = threshold
        z = input * beta
        soft = torch.logaddexp(z, torch.zeros_like(z)) / beta
        return torch.where(z > threshold, input, soft)

    @staticmethod
    def backward(ctx, grad_output):
        input, = ctx.saved_tensors
        z = input * ctx.beta
        slope = torch.sigmoid(z)
        slope = torch.where(z > ctx.threshold, torch.ones_like(z), slope)
        return grad_output * slope, None, None
