import torch
from torch import Tensor, nn


class _ApplyField(torch.autograd.Function):
    @staticmethod
    def forward(ctx, image, coef, basis, owner):
        out = image * torch.exp(-torch.einsum("k,khw->hw", coef, basis))
        owner.last_corrected = out.detach().clone()
        ctx.save_for_backward(image, coef, basis)
        ctx.owner = owner
        return out

    @staticmethod
    def backward(ctx, grad):
        image, coef, basis = ctx.saved_tensors
        gain = torch.exp(-torch.einsum("k,khw->hw", coef, basis))
        grad_coef = -torch.einsum("bhw,khw->k", grad * ctx.owner.last_corrected, basis)
        return grad * gain, grad_coef, None, None


class BiasField(nn.Module):
    """Multiplicative bias field correction, the log field a polynomial of the position.

    The last corrected batch stays in ``last_corrected`` for the dashboards.

    Args:
        height, width: size of the slices.
        degree: highest total degree.
    """

    def __init__(self, height: int, width: int, degree: int = 2) -> None:
        super().__init__()
        y = torch.linspace(-1, 1, height)[:, None]
        x = torch.linspace(-1, 1, width)[None, :]
        terms = [y**i * x**j for i in range(degree + 1) for j in range(degree + 1 - i)]
        self.register_buffer("basis", torch.stack([t.expand(height, width) for t in terms]))
        self.coef = nn.Parameter(torch.zeros(len(terms)))
        self.last_corrected: Tensor | None = None

    def forward(self, image: Tensor) -> Tensor:
        if image.shape[1:] != self.basis.shape[1:]:
            raise ValueError(f"expected slices of {tuple(self.basis.shape[1:])}")
        return _ApplyField.apply(image, self.coef, self.basis, self)
