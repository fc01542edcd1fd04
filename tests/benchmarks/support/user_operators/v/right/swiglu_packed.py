import torch


class SwiGLUPacked(torch.autograd.Function):
    """SwiGLU of a fused projection.

    ``h`` is the output of one matmul with ``[W_gate; W_up]``, i.e. the last dim holds the gate
    in its first half and the value in its second half.
    """

    @staticmethod
    def forward(h):
        gate, up = h.chunk(2, dim=-1)
        return gate * torch.sigmoid(gate) * up

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, dy):
        (h,) = ctx.saved_tensors
        gate, up = h.chunk(2, dim=-1)
        sig = torch.sigmoid(gate)
        silu = gate * sig
        dgate = dy * up * (silu + sig * (1 - silu))
        dup = dy * silu
        return torch.cat([dgate, dup], dim=-1)


def swiglu_packed(h):
    return SwiGLUPacked.apply(h)
