import math
import torch


class ApplyCTF(torch.autograd.Function):
    """Multiply projections by the contrast transfer function of the microscope.

    image:    (B, N, N) real projections
    defocus:  (B,) in Angstrom * 1e4 (microns), positive is underfocus
    pixel:    pixel size, Angstrom
    lam:      electron wavelength (Angstrom)
    cs:       spherical aberration
    w:        amplitude contrast, 0.07 for ice
    """

    @staticmethod
    def forward(ctx, image, defocus, pixel=2.0, lam=0.0197, cs=2.7, w=0.07):
        n = image.shape[-1]
        f = torch.fft.fftfreq(n, d=pixel, dtype=image.dtype, device=image.device)
        k2 = f[:, None] ** 2 + f[None, :] ** 2
        shift = math.asin(w)
        a = math.pi * lam * 1e4 * k2
        b = 0.5 * math.pi * lam ** 3 * cs * 1e7 * k2 ** 2
        chi = a * defocus[:, None, None] - b
        spec = torch.fft.fft2(image)
        out = torch.fft.ifft2(spec * -torch.sin(chi + shift)).real
        ctx.save_for_backward(spec, chi, a)
        ctx.shift = shift
        return out

    @staticmethod
    def backward(ctx, grad_out):
        spec, chi, a = ctx.saved_tensors
        phase = chi + ctx.shift
        g_img = torch.fft.ifft2(torch.fft.fft2(grad_out) * -torch.sin(phase)).real
        d = torch.fft.ifft2(spec * (-torch.cos(chi) * a)).real
        g_def = (grad_out * d).sum(dim=(-2, -1))
        return g_img, g_def, None, None, None, None
