from typing import Optional

import torch


def _counts(indptr):
    return indptr[1:] - indptr[:-1]


def gather_csr(src: torch.Tensor, indptr: torch.Tensor) -> torch.Tensor:
    return src.repeat_interleave(_counts(indptr), dim=0)


class SegmentCSR(torch.autograd.Function):
    @staticmethod
    def forward(ctx, src: torch.Tensor, indptr: torch.Tensor, reduce: str = "sum"):
        assert indptr.dim() == 1 and int(indptr[-1]) == src.size(0)
        size = indptr.numel() - 1
        index = gather_csr(torch.arange(size, device=src.device), indptr)
        ctx.reduce = reduce
        ctx.src_shape = src.shape
        arg: Optional[torch.Tensor] = None
        if reduce in ("sum", "mean"):
            out = src.new_zeros(size, *src.shape[1:]).index_add_(0, index, src)
            if reduce == "mean":
                cnt = _counts(indptr).clamp(min=1).to(src.dtype)
                out /= cnt.view(-1, *[1] * (src.dim() - 1))
        elif reduce in ("min", "max"):
            out = src.new_zeros(size, *src.shape[1:])
            arg = torch.full(out.shape, src.size(0), dtype=torch.long, device=src.device)
            for s in range(size):
                lo, hi = int(indptr[s]), int(indptr[s + 1])
                if hi > lo:
                    val, pos = getattr(src[lo:hi], reduce)(0)
                    out[s], arg[s] = val, pos + lo
        else:
            raise ValueError(f"unknown reduction '{reduce}'")
        ctx.save_for_backward(indptr, arg)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        indptr, arg = ctx.saved_tensors
        if arg is not None:
            grad = grad_out.new_zeros(ctx.src_shape[0] + 1, *ctx.src_shape[1:])
            grad = grad.scatter(0, arg, grad_out)
            return grad[:-1], None, None
        grad = gather_csr(grad_out, indptr)
        if ctx.reduce == "mean":
            cnt = gather_csr(_counts(indptr), indptr).to(grad.dtype)
            grad = grad / cnt.view(-1, *[1] * (grad.dim() - 1))
        return grad, None, None
