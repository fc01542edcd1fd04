"""Differentiable building blocks for optical, thermal and radar scenes."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import Function

PLANCK_C1 = 1.191042e8
PLANCK_C2 = 14387.77


def _box_sum(signal: Tensor, before: int, after: int) -> Tensor:
    padded = F.pad(signal, (before, after))
    return padded.unfold(-1, before + after + 1, 1).sum(-1)


def _clamped_range(size, device):
    return torch.arange(-1, size + 1, device=device).clamp(0, size - 1)


class SpectralAngle(Function):
    """Angle between each pixel spectrum and each reference spectrum.

    pixels is (..., bands) and references (classes, bands); the result is (..., classes).
    Angles are radians unless ``degrees`` is set. Parallel spectra get a zero gradient.
    """

    @staticmethod
    def forward(ctx, pixels: Tensor, references: Tensor, degrees: bool = False) -> Tensor:
        if references.dim() != 2 or pixels.shape[-1] != references.shape[1]:
            raise ValueError("references must be (classes, bands) with the bands of pixels")
        length = pixels.norm(dim=-1, keepdim=True)
        ref_length = references.norm(dim=-1)
        if bool((length == 0).any()) or bool((ref_length == 0).any()):
            raise ValueError("a spectrum of zero length has no angle")
        cosine = (pixels @ references.t()) / (length * ref_length)
        ctx.save_for_backward(pixels, references)
        angle = torch.acos(cosine.clamp(-1.0, 1.0))
        return torch.rad2deg(angle) if degrees else angle

    @staticmethod
    def backward(ctx, grad):
        pixels, references = ctx.saved_tensors
        length = pixels.norm(dim=-1, keepdim=True)
        ref_length = references.norm(dim=-1, keepdim=True)
        p = pixels / length
        r = references / ref_length
        cosine = p @ r.t()
        sine_sq = 1.0 - cosine * cosine
        apart = sine_sq > 1e-14
        slope = torch.where(
            apart, -grad / torch.where(apart, sine_sq, torch.ones_like(sine_sq)).sqrt(), 0.0
        )
        d_pixels = d_refs = None
        if ctx.needs_input_grad[0]:
            d_pixels = (slope @ r - (slope * cosine).sum(-1, keepdim=True) * p) / length
        if ctx.needs_input_grad[1]:
            classes, bands = references.shape
            flat = slope.reshape(-1, classes)
            along = (flat * cosine.reshape(-1, classes)).sum(0).unsqueeze(1)
            d_refs = (flat.t() @ p.reshape(-1, bands) - along * r) / ref_length
        return d_pixels, d_refs, None


class RidgeUnmix(Function):
    @staticmethod
    def forward(ctx, pixels, endmembers, ridge=1e-2):
        if ridge <= 0:
            raise ValueError("ridge must be positive")
        eye = torch.eye(endmembers.shape[0], dtype=endmembers.dtype, device=endmembers.device)
        gram = endmembers @ endmembers.t() + ridge * eye
        chol = torch.linalg.cholesky(gram)
        abundance = torch.cholesky_solve(endmembers @ pixels.t(), chol).t().contiguous()
        ctx.save_for_backward(pixels, endmembers, abundance)
        ctx.chol = chol
        return abundance

    @staticmethod
    def backward(ctx, grad):
        pixels, endmembers, abundance = ctx.saved_tensors
        adjoint = torch.cholesky_solve(grad.t(), ctx.chol).t()
        d_pixels = adjoint @ endmembers if ctx.needs_input_grad[0] else None
        d_end = None
        if ctx.needs_input_grad[1]:
            residual = pixels - abundance @ endmembers
            d_end = adjoint.t() @ residual - abundance.t() @ (adjoint @ endmembers)
        return d_pixels, d_end, None


class BilinearSwath(Function):
    """Samples a raster along a swath of fractional pixel positions.

    Args:
        image: (channels, height, width), at least two rows and columns.
        rows, cols: (points,) positions in pixel units; positions off the raster are
            moved to its border and then carry no positional gradient.

    Returns (channels, points).
    """

    @staticmethod
    def _locate(position, size):
        inside = (position >= 0) & (position <= size - 1)
        held = position.clamp(0, size - 1)
        base = held.detach().floor().clamp(max=size - 2)
        return base.long(), held - base, inside

    @staticmethod
    def forward(ctx, image, rows, cols):
        if image.dim() != 3 or min(image.shape[1:]) < 2:
            raise ValueError("image must be (channels, height, width) with two pixels each way")
        if rows.shape != cols.shape or rows.dim() != 1:
            raise ValueError("rows and cols must be vectors of one length")
        height, width = image.shape[1:]
        r, fr, _ = BilinearSwath._locate(rows, height)
        c, fc, _ = BilinearSwath._locate(cols, width)
        top = image[:, r, c] * (1 - fc) + image[:, r, c + 1] * fc
        bottom = image[:, r + 1, c] * (1 - fc) + image[:, r + 1, c + 1] * fc
        ctx.save_for_backward(image, rows, cols)
        return top * (1 - fr) + bottom * fr

    @staticmethod
    def backward(ctx, grad):
        image, rows, cols = ctx.saved_tensors
        channels, height, width = image.shape
        r, fr, r_in = BilinearSwath._locate(rows, height)
        c, fc, c_in = BilinearSwath._locate(cols, width)
        d_image = d_rows = d_cols = None
        if ctx.needs_input_grad[0]:
            d_image = grad.new_zeros(channels, height * width)
            corners = (
                (0, 0, (1 - fr) * (1 - fc)),
                (0, 1, (1 - fr) * fc),
                (1, 0, fr * (1 - fc)),
                (1, 1, fr * fc),
            )
            for dr, dc, share in corners:
                cell = (r + dr) * width + (c + dc)
                d_image[:, cell] = d_image[:, cell] + grad * share
            d_image = d_image.view(channels, height, width)
        v00, v01 = image[:, r, c], image[:, r, c + 1]
        v10, v11 = image[:, r + 1, c], image[:, r + 1, c + 1]
        if ctx.needs_input_grad[1]:
            down = (v10 - v00) * (1 - fc) + (v11 - v01) * fc
            d_rows = (grad * down).sum(0) * r_in
        if ctx.needs_input_grad[2]:
            across = (v01 - v00) * (1 - fr) + (v11 - v10) * fr
            d_cols = (grad * across).sum(0) * c_in
        return d_image, d_rows, d_cols


class ToaReflectance(Function):
    """Surface reflectance from at-sensor radiance, with coupling through the sky.

    All four tensors broadcast against each other.
    """

    @staticmethod
    def forward(
        ctx,
        radiance: Tensor,
        path_radiance: Tensor,
        transmittance: Tensor,
        sky_albedo: Tensor,
        irradiance: float,
        sun_zenith: float = 30.0,
    ) -> Tensor:
        if not 0 <= sun_zenith < 90:
            raise ValueError("sun_zenith is in degrees, below 90")
        gain = math.pi / (irradiance * math.cos(math.radians(sun_zenith)))
        rho = gain * (radiance - path_radiance) / transmittance
        ctx.gain = gain
        ctx.save_for_backward(radiance, path_radiance, transmittance, sky_albedo)
        return rho / (1 + sky_albedo * rho)

    @staticmethod
    def backward(ctx, grad):
        radiance, path_radiance, transmittance, sky_albedo = ctx.saved_tensors
        rho = ctx.gain * (radiance - path_radiance) / transmittance
        d_rho = grad / (1 + sky_albedo * rho) ** 2
        d_signal = d_rho * ctx.gain / transmittance
        d_rad = d_path = d_trans = d_sky = None
        if ctx.needs_input_grad[0]:
            d_rad = d_signal.sum_to_size(radiance.shape)
            d_path = -d_signal.sum_to_size(path_radiance.shape)
        if ctx.needs_input_grad[2]:
            d_trans = (-d_rho * rho / transmittance).sum_to_size(transmittance.shape)
        if ctx.needs_input_grad[3]:
            d_sky = (-d_rho * rho * rho).sum_to_size(sky_albedo.shape)
        return d_rad, d_path, d_trans, d_sky, None, None


class SarMultilook(Function):
    @staticmethod
    def forward(ctx, slc, looks_az, looks_rg, amplitude=False):
        if not slc.is_complex():
            raise TypeError("a single-look image is complex")
        height, width = slc.shape[-2] // looks_az, slc.shape[-1] // looks_rg
        if height == 0 or width == 0:
            raise ValueError("more looks than samples")
        kept = slc[..., : height * looks_az, : width * looks_rg]
        power = kept.real.square() + kept.imag.square()
        blocks = power.reshape(*slc.shape[:-2], height, looks_az, width, looks_rg)
        out = blocks.mean(dim=(-3, -1))
        if amplitude:
            out = out.sqrt()
        ctx.save_for_backward(slc, out)
        ctx.looks = (looks_az, looks_rg)
        ctx.amplitude = amplitude
        return out

    @staticmethod
    def backward(ctx, grad):
        slc, out = ctx.saved_tensors
        az, rg = ctx.looks
        if ctx.amplitude:
            lit = out > 0
            grad = torch.where(lit, grad / (2 * torch.where(lit, out, torch.ones_like(out))), 0.0)
        spread = (grad / (az * rg)).repeat_interleave(az, -2).repeat_interleave(rg, -1)
        spread = F.pad(
            spread, (0, slc.shape[-1] - spread.shape[-1], 0, slc.shape[-2] - spread.shape[-2])
        )
        return 2 * spread * slc.conj(), None, None, None


class WindowedCoherence(Function):
    """Complex coherence of two co-registered complex lines in a sliding window.

    first, second: (..., samples), complex. The window covers ``(window - 1) // 2`` samples
    before and ``window // 2`` after each sample and is cut at the ends of the line.
    Returns (..., samples), complex.
    """

    @staticmethod
    def forward(ctx, first, second, window=5):
        if first.shape != second.shape:
            raise ValueError("the two lines must have one shape")
        if not (first.is_complex() and second.is_complex()):
            raise TypeError("both lines must be complex")
        if window < 1:
            raise ValueError("window must be at least one")
        before, after = (window - 1) // 2, window // 2
        cross = _box_sum(first * second.conj(), before, after)
        p1 = _box_sum((first * first.conj()).real, before, after)
        p2 = _box_sum((second * second.conj()).real, before, after)
        if bool((p1 * p2 == 0).any()):
            raise ValueError("a window without power has no coherence")
        gamma = cross / torch.sqrt(p1 * p2)
        ctx.save_for_backward(first, second, gamma)
        ctx.reach = (before, after)
        return gamma

    @staticmethod
    def backward(ctx, grad):
        first, second, gamma = ctx.saved_tensors
        before, after = ctx.reach
        p1 = _box_sum((first * first.conj()).real, before, after)
        p2 = _box_sum((second * second.conj()).real, before, after)
        pull = (grad.conj() * gamma).real
        b_cross = _box_sum(grad / torch.sqrt(p1 * p2), before, after)
        d_first = d_second = None
        if ctx.needs_input_grad[0]:
            b1 = _box_sum(-pull / (2 * p1), before, after)
            d_first = b_cross * second + 2 * b1 * first
        if ctx.needs_input_grad[1]:
            b2 = _box_sum(-pull / (2 * p2), before, after)
            d_second = b_cross.conj() * first + 2 * b2 * second
        return d_first, d_second, None


class TemporalComposite(Function):
    """Cloud-free composite over the first axis; returns the composite and the valid count."""

    @staticmethod
    def forward(ctx, stack, valid, mode="mean", fill=0.0):
        if valid.dtype != torch.bool or valid.shape != stack.shape:
            raise ValueError("valid must be a boolean tensor shaped like stack")
        if mode not in ("mean", "median"):
            raise ValueError(f"unknown mode {mode!r}")
        count = valid.sum(0)
        some = count > 0
        if mode == "mean":
            total = stack.masked_fill(~valid, 0.0).sum(0)
            value = total / count.clamp(min=1)
            ctx.save_for_backward(valid, count)
        else:
            order = stack.masked_fill(~valid, math.inf).argsort(dim=0)
            low = order.gather(0, ((count - 1).clamp(min=0) // 2).unsqueeze(0))
            high = order.gather(0, (count // 2).clamp(max=len(stack) - 1).unsqueeze(0))
            high = torch.where(some, high, low)
            value = 0.5 * (stack.gather(0, low) + stack.gather(0, high)).squeeze(0)
            ctx.save_for_backward(count, low)
        ctx.mode = mode
        ctx.length = len(stack)
        ctx.mark_non_differentiable(count)
        return torch.where(some, value, torch.full_like(value, fill)), count

    @staticmethod
    def backward(ctx, grad, _):
        if ctx.mode == "mean":
            valid, count = ctx.saved_tensors
            share = grad / count.clamp(min=1)
            return share.unsqueeze(0) * valid, None, None, None
        count, low = ctx.saved_tensors
        grad = (grad * (count > 0)).unsqueeze(0)
        out = grad.new_zeros((ctx.length,) + tuple(grad.shape[1:]))
        out = out.scatter_add(0, low, grad)
        return out, None, None, None


class DarkObjectSubtract(Function):
    """Removes haze: each band loses its ``rank``-th darkest value and is cut at zero.

    Returns the corrected cube (bands, height, width) and the dark values (bands,).
    """

    @staticmethod
    def forward(ctx, cube: Tensor, rank: int = 1):
        if cube.dim() != 3:
            raise ValueError("cube must be (bands, height, width)")
        flat = cube.reshape(cube.shape[0], -1)
        if not 1 <= rank <= flat.shape[1]:
            raise ValueError("rank must lie between one and the number of pixels")
        dark, where = flat.kthvalue(rank, dim=1)
        above = flat > dark.unsqueeze(1)
        lifted = flat.sub_(dark.unsqueeze(1))
        ctx.save_for_backward(above, where)
        return lifted.clamp(min=0.0).view(cube.shape), dark

    @staticmethod
    def backward(ctx, grad, grad_dark):
        above, where = ctx.saved_tensors
        passed = grad.reshape(above.shape) * above
        at_dark = grad_dark - passed.sum(1)
        return passed.scatter_add(1, where.unsqueeze(1), at_dark.unsqueeze(1)).view_as(grad), None


class HillShade(Function):
    @staticmethod
    def _slopes(dem, cell):
        ri = _clamped_range(dem.shape[-2], dem.device)
        ci = _clamped_range(dem.shape[-1], dem.device)
        z = dem.index_select(-2, ri).index_select(-1, ci)
        east = z[..., :-2, 2:] + 2 * z[..., 1:-1, 2:] + z[..., 2:, 2:]
        west = z[..., :-2, :-2] + 2 * z[..., 1:-1, :-2] + z[..., 2:, :-2]
        north = z[..., :-2, :-2] + 2 * z[..., :-2, 1:-1] + z[..., :-2, 2:]
        south = z[..., 2:, :-2] + 2 * z[..., 2:, 1:-1] + z[..., 2:, 2:]
        return (east - west) / (8 * cell), (north - south) / (8 * cell)

    @staticmethod
    def forward(ctx, dem, azimuth=315.0, altitude=45.0, cell=30.0):
        az, alt = math.radians(azimuth), math.radians(altitude)
        ctx.sun = (math.sin(az) * math.cos(alt), math.cos(az) * math.cos(alt), math.sin(alt))
        ctx.cell = cell
        ctx.save_for_backward(dem)
        p, q = HillShade._slopes(dem, cell)
        sx, sy, sz = ctx.sun
        return ((sz - sx * p - sy * q) / (1 + p * p + q * q).sqrt()).clamp(min=0.0)

    @staticmethod
    def backward(ctx, grad):
        (dem,) = ctx.saved_tensors
        sx, sy, sz = ctx.sun
        p, q = HillShade._slopes(dem, ctx.cell)
        facing = sz - sx * p - sy * q
        inv = (1 + p * p + q * q).rsqrt()
        grad = grad * (facing > 0) / (8 * ctx.cell)
        gp = grad * inv * (-sx - facing * p * inv * inv)
        gq = grad * inv * (-sy - facing * q * inv * inv)
        height, width = dem.shape[-2:]
        padded = grad.new_zeros(*dem.shape[:-2], height + 2, width + 2)
        for lag, weight in ((0, 1.0), (1, 2.0), (2, 1.0)):
            padded[..., lag : lag + height, 2:] += weight * gp
            padded[..., lag : lag + height, :-2] -= weight * gp
            padded[..., :-2, lag : lag + width] += weight * gq
            padded[..., 2:, lag : lag + width] -= weight * gq
        ri = _clamped_range(height, dem.device)
        rows = grad.new_zeros(*dem.shape[:-2], height, width + 2).index_add(-2, ri, padded)
        return rows[..., 1:-1], None, None, None


class PlanckInversion(nn.Module):
    """Brightness temperature of a channel with a given spectral response.

    The temperature solves ``sum_w response[w] * B(wavelengths[w], T) = radiance``. The
    iteration keeps no graph; one attached step at the solution carries first derivatives
    with respect to radiance (...,) and response (wavelengths,).
    """

    def __init__(self, wavelengths, start: float = 290.0, steps: int = 30):
        super().__init__()
        self.register_buffer("wavelengths", torch.as_tensor(wavelengths, dtype=torch.float64))
        self.start = start
        self.steps = steps

    def _band(self, temperature, response):
        lam = self.wavelengths.to(temperature.dtype)
        x = PLANCK_C2 / (lam * temperature.unsqueeze(-1))
        return (response * PLANCK_C1 / lam**5 / torch.expm1(x)).sum(-1)

    def _band_slope(self, temperature, response):
        lam = self.wavelengths.to(temperature.dtype)
        t = temperature.unsqueeze(-1)
        x = PLANCK_C2 / (lam * t)
        planck = response * PLANCK_C1 / lam**5 / torch.expm1(x)
        return (planck * x / t / -torch.expm1(-x)).sum(-1)

    def forward(self, radiance: Tensor, response: Tensor) -> Tensor:
        if response.shape != self.wavelengths.shape:
            raise ValueError("one response per wavelength")
        if bool((radiance <= 0).any()):
            raise ValueError("radiance must be positive")
        with torch.no_grad():
            temperature = torch.full_like(radiance, self.start)
            slope = self._band_slope(temperature, response)
            for _ in range(self.steps):
                excess = self._band(temperature, response) - radiance
                temperature = temperature - excess / self._band_slope(temperature, response)
        return temperature - (self._band(temperature, response) - radiance) / slope
