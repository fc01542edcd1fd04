"""``gradlint kernels compile --report``: machine code that is read, and what must not be in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gradlint.native.gpus import GPUS, gpus_for
from gradlint.native.kernel_report import (
    Judged,
    judge,
    plain_name,
    report_kernels,
    shape_of,
    slots_per_element,
)
from gradlint.native.machine_code import disassembler, kernels_of

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")

#: One fault each, and beside it the same without.
PLANTED = """
struct alignas(16) Four { float at[4]; };

__global__ void __launch_bounds__(256) bytes_one_by_one(const unsigned char* x, float* y) {
  unsigned bits = 0;
  for (int i = 0; i < 4; ++i) bits |= static_cast<unsigned>(x[4 * threadIdx.x + i]) << 8 * i;
  y[threadIdx.x] = __uint_as_float(bits);
}

__global__ void __launch_bounds__(256) words(const unsigned* x, float* y) {
  y[threadIdx.x] = __uint_as_float(x[threadIdx.x]);
}

template <int Count>
__device__ void hold(const float* x, float* y) {
  float held[Count];
#pragma unroll
  for (int i = 0; i < Count; ++i) held[i] = x[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    float sum = 0;
#pragma unroll
    for (int j = 0; j < Count; j += 4) sum += held[(i * 7 + j) % Count] * held[j];
    y[i * 1024 + threadIdx.x] = sum;
  }
}

__global__ void __launch_bounds__(1024) spills(const float* x, float* y) { hold<120>(x, y); }
__global__ void __launch_bounds__(256) holds(const float* x, float* y) { hold<120>(x, y); }
__global__ void unbounded(const float* x, float* y) { hold<120>(x, y); }
"""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Judged]:
    source = tmp_path_factory.mktemp("planted") / "planted.cu"
    source.write_text(PLANTED, encoding="utf-8")
    report = report_kernels(("sm_90",), sources=[source])
    assert [item.ok for item in report.compiled] == [True], report.compiled[0].output
    return {item.kernel.partition("(")[0]: item for item in report.kernels}


@needs_nvcc
def test_planted_faults_are_found(planted: dict[str, Judged]) -> None:
    found = {name: item.faults for name, item in planted.items()}
    assert sorted(found) == [
        "bytes_one_by_one", "holds", "spills", "unbounded", "words"
    ]  # fmt: skip
    (byte,) = found["bytes_one_by_one"]
    assert byte == "reads single bytes, in 4 places"
    (spill,) = found["spills"]
    assert spill == f"spills {planted['spills'].spilled} bytes of registers"
    assert planted["spills"].spilled > 0
    (excess,) = found["unbounded"]
    used = planted["unbounded"].registers
    assert used > 64
    assert excess.startswith(
        f"{used} registers for each of the 1024 threads that a block without launch bounds has: "
    )


@needs_nvcc
def test_near_misses_pass(planted: dict[str, Judged]) -> None:
    assert planted["words"].faults == ()
    assert planted["words"].loads == {4: 1}
    assert planted["holds"].faults == ()
    assert (planted["holds"].threads, planted["holds"].spilled) == (256, 0)
    assert 64 < planted["holds"].registers <= 256


BODY = "gradlint::cuda::Map<float, 1, 1, gradlint::cuda::Twice, (gradlint::cuda::Access)0>"
NAME = f"void gradlint::device::run_body<gradlint::cuda::Block, {BODY} >({BODY})"

PTX = """
.visible .entry twice(
)
.maxntid 256, 1, 1
{
	ld.global.v4.u32 	{%r1, %r2, %r3, %r4}, [%rd1];
	@%p1 ld.global.nc.v4.u32 	{%r5, %r6, %r7, %r8}, [%rd2];
	ld.shared.u8 	%rs1, [%rd4];
	st.global.v4.u32 [%rd3], {%r1, %r2, %r3, %r4};
}
"""

LOG = """
ptxas info    : Compiling entry function 'twice' for 'sm_90'
ptxas info    : Function properties for twice
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 24 registers, used 0 barriers
"""

#: A loop of two packs, a division's call that is jumped over, and a loop of single elements.
SASS = """
	.section	.text.twice,"ax",@progbits
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/               @P0 BRA `(.L_x_3) ;
.L_x_1:
        /*0020*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0030*/                   LDG.E.128 R8, desc[UR4][R2.64+0x10] ;
        /*0040*/                   FADD R4, R4, R4 ;
        /*0050*/               @P2 BRA `(.L_x_2) ;
        /*0060*/                   MOV R20, 0x70 ;
        /*0070*/                   CALL.REL.NOINC `($slow) ;
.L_x_2:
        /*0080*/                   STG.E.128 desc[UR4][R12.64], R4 ;
        /*0090*/                   STG.E.128 desc[UR4][R12.64+0x10], R8 ;
        /*00a0*/               @P1 BRA `(.L_x_1) ;
        /*00b0*/                   EXIT ;
.L_x_3:
        /*00c0*/                   LDG.E R4, desc[UR4][R2.64] ;
        /*00d0*/                   STG.E desc[UR4][R12.64], R4 ;
        /*00e0*/               @P1 BRA `(.L_x_3) ;
        /*00f0*/                   EXIT ;
.L_x_4:
        /*0100*/                   BRA `(.L_x_4);
"""


def test_the_hot_path_is_that_of_wide_accesses() -> None:
    (kernel,) = kernels_of(PTX, LOG, SASS)
    assert (kernel.registers, kernel.spilled, kernel.threads) == (24, 0, 256)
    assert (dict(kernel.loads), dict(kernel.stores)) == ({16: 2}, {16: 1})
    assert kernel.wide is not None
    assert kernel.single is not None
    assert kernel.wide.loop is not None
    # Two before the loop, seven in it without the call, one behind it: ten.
    assert (kernel.wide.whole.instructions.total(), kernel.wide.loop.instructions.total()) == (
        10,
        7,
    )
    assert (kernel.wide.loop.loaded, kernel.wide.loop.stored) == (32, 32)
    assert kernel.wide.in_flight == 32
    assert kernel.single.loop is not None
    assert (kernel.single.loop.loaded, kernel.single.loop.stored) == (4, 4)
    shape = shape_of(plain_name(NAME), 4)
    assert shape is not None
    costs = slots_per_element(kernel.wide, shape, 4)
    assert costs is not None
    assert sum(costs.values()) == pytest.approx(10 / 8)


def test_more_instructions_than_there_is_time_for() -> None:
    busy = SASS.replace(
        "FADD R4, R4, R4 ;", "FADD R4, R4, R4 ;" + "\n /*0040*/ FADD R5, R5, R5 ;" * 800
    )
    for sass, faults in ((SASS, ()), (busy, ("101 instructions an element, with time for 62",))):
        (kernel,) = kernels_of(PTX, LOG, sass)
        kernel.name = NAME
        judged = judge(kernel, "twice.cu", "sm_90", ("sm_90",))
        assert judged.faults == faults
        assert (judged.dtype, judged.share["H200"] > 0.9) == ("float32", not faults)
        assert judged.share["H100"] >= judged.share["H200"]


def test_what_is_not_wide_where_it_must_be() -> None:
    narrow = PTX.replace("ld.global.v4.u32", "ld.global.u32").replace("nc.v4.u32", "nc.u32")
    (kernel,) = kernels_of(narrow.replace("{%r1, %r2, %r3, %r4}, [%rd1]", "%r1, [%rd1]"), LOG, None)
    kernel.name = NAME
    assert judge(kernel, "twice.cu", "sm_90", ("sm_90",)).faults == ("reads no 16 bytes at once",)


def test_masks_are_bytes() -> None:
    (kernel,) = kernels_of(PTX.replace("ld.global.v4.u32", "ld.global.u8"), LOG, None)
    kernel.name = "void gradlint::device::run_body<Block, gradlint::cuda::MaskedSoftmax<float> >(x)"
    assert judge(kernel, "attention.cu", "sm_90", ("sm_90",)).faults == ()


def test_time_for_instructions() -> None:
    h200 = GPUS[0]
    # 132 multiprocessors start 128 threads' instructions in a clock of 1.98 GHz, while 4.32 TB/s
    # move eight bytes.
    assert h200.slots(8) == pytest.approx(128 * 132 * 1.98e9 * 8 / 4.32e12)
    assert [gpu.name for gpu in gpus_for("sm_80", ("sm_80", "sm_90"))] == ["A100", "L40S", "L4"]
    assert [gpu.name for gpu in gpus_for("sm_80", ("sm_80", "sm_89"))] == ["A100"]


@needs_nvcc
def test_nvdisasm_is_looked_for_in_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert disassembler(str(tmp_path / "nvcc")) is None
    tool = tmp_path / "nvidia" / "cu13" / "bin" / "nvdisasm"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    assert disassembler(str(tmp_path / "nvcc")) == str(tool)
