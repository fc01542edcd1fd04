"""Linear layer with frozen 4 bit weights."""
import torch
import torch.nn as nn
import torch.nn.functional as F

NF4 = [-1.0, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0.0,
       0.0796, 0.1609, 0.2461, 0.3379, 0.4407, 0.5626, 0.7230, 1.0]


def quantize_4bit(weight, code, blocksize):
    blocks = weight.reshape(-1, blocksize)
    absmax = blocks.abs().amax(1).clamp(min=1e-12)
    nearest = (blocks / absmax[:, None]).unsqueeze(-1).sub(code).abs().argmin(-1).reshape(-1).to(torch.uint8)
    return nearest[::2] << 4 | nearest[1::2], absmax


def dequantize_4bit(packed, absmax, code, shape, blocksize, dtype):
    both = torch.stack([packed >> 4, packed & 15], 1).reshape(-1, blocksize).long()
    return (code[both] * absmax[:, None]).to(dtype).reshape(shape)


class MatMul4Bit(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A, packed, absmax, code, shape, blocksize, bias):
        ctx.save_for_backward(packed, absmax, code)
        ctx.shape, ctx.blocksize = shape, blocksize
        ctx.has_bias = bias is not None
        ctx.dtype_A = A.dtype
        return F.linear(A, dequantize_4bit(packed, absmax, code, shape, blocksize, A.dtype), bias)

    @staticmethod
    def backward(ctx, grad_output):
        packed, absmax, code = ctx.saved_tensors
        grad_A = grad_bias = None
        if ctx.needs_input_grad[0]:
            B = dequantize_4bit(packed, absmax, code, ctx.shape, ctx.blocksize, torch.bfloat16)
            grad_A = (grad_output.to(B.dtype) @ B).to(ctx.dtype_A)
        if ctx.has_bias and ctx.needs_input_grad[6]:
            grad_bias = grad_output.flatten(0, -2).sum(0)
        return grad_A, None, None, None, None, None, grad_bias


class Linear4bit(nn.Module):
    """
    Args:
        in_features, out_features: sizes; their product must be a multiple of ``blocksize``
        bias: whether to learn a bias
        blocksize: even number of weights that share a scale
    """

    def __init__(self, in_features, out_features, bias=True, blocksize=8):
        super().__init__()
        if blocksize % 2 or in_features * out_features % blocksize:
            raise ValueError("blocksize must be even and divide the number of weights")
        self.shape = (out_features, in_features)
        self.blocksize = blocksize
        self.register_buffer("code", torch.tensor(NF4))
        packed, absmax = quantize_4bit(nn.Linear(in_features, out_features).weight.detach(), self.code, blocksize)
        self.register_buffer("packed", packed)
        self.register_buffer("absmax", absmax)
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None

    def forward(self, x):
        if x.dim() < 2:
            raise ValueError("expected a batch of inputs")
        return MatMul4Bit.apply(x, self.packed, self.absmax, self.code, self.shape, self.blocksize, self.bias)
