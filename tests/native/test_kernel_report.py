"""``gradlint kernels compile --report``: machine code that is read, and what must not be in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gradlint.native.gpus import GPUS, gpus_for
from gradlint.native.kernel_budgets import Shape, budget_of
from gradlint.native.kernel_report import Judged, judge, report_kernels, slots_per_element, worst
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
    costs = slots_per_element(kernel.wide, Shape(inputs=1, outputs=1), 4)
    assert costs is not None
    assert sum(costs.values()) == pytest.approx(10 / 8)


def with_additions(count: int) -> str:
    more = "\n /*0040*/ FADD R5, R5, R5 ;" * count
    return SASS.replace("FADD R4, R4, R4 ;", "FADD R4, R4, R4 ;" + more)


def judged(name: str, sass: str, ptx: str = PTX) -> Judged:
    (kernel,) = kernels_of(ptx, LOG, sass)
    kernel.name = name
    return judge(kernel, "twice.cu", "sm_90", ("sm_90",))


@pytest.mark.parametrize(
    ("added", "share", "fault"),
    [
        # share = (1 + (slots / 62)^2.5)^(-1/2.5). Four accesses of 16 bytes for 8 elements take
        # eight slots an element; then the additions take more.
        (0, 0.998, ""),
        # Near misses on both sides of the goal: 46 and 48 slots.
        (360, 0.855, ""),
        (372, 0.845, "84.5%"),
        (800, 0.552, "55.2%"),
    ],
)
def test_a_kernel_slower_than_its_goal(added: int, share: float, fault: str) -> None:
    found = judged(NAME, with_additions(added))
    text = f"{fault} of a copy's bandwidth predicted on H200, less than its goal of 85%"
    assert found.faults == ((text,) if fault else ())
    assert (found.dtype, found.goal, found.exempt) == ("float32", 0.85, "")
    assert found.share["H200"] == pytest.approx(share, abs=6e-4)
    assert found.share["H100"] >= found.share["H200"]


def test_views_have_another_goal_and_some_kernels_none() -> None:
    rows = NAME.replace("(gradlint::cuda::Access)0", "(gradlint::cuda::Access)1")
    assert (judged(rows, with_additions(372)).goal, judged(rows, SASS).faults) == (0.75, ())
    assert judged(rows, with_additions(372)).faults == ()
    assert len(judged(rows, with_additions(800)).faults) == 1
    several = judged(NAME.replace("Access)0", "Access)3"), with_additions(800))
    assert (several.goal, several.faults) == (None, ())
    assert several.exempt.startswith("views with several strided axes: ")
    double = judged(NAME.replace("float", "double"), with_additions(800))
    assert (double.goal, double.faults) == (None, ())
    assert double.exempt.startswith("float64: ")


def test_a_kernel_without_a_budget() -> None:
    name = "void gradlint::device::run_body<gradlint::cuda::Block, gradlint::cuda::New<float> >(x)"
    assert judged(name, SASS).faults == (
        "has no budget: gradlint/native/kernel_budgets.py names neither it nor a reason",
    )
    # A kernel of a user's own is not asked for one.
    assert judged("New<float>(x)", SASS).faults == ()


def test_machine_code_that_moves_nothing_as_it_should() -> None:
    single = SASS.replace("STG.E.128", "STG.E").replace("LDG.E.128", "LDG.E")
    assert judged(NAME, single).faults == (
        "moves no elements on any way through its machine code: no share could be predicted",
    )


def test_a_loop_that_is_left_by_a_call() -> None:
    # As in code for sm_80: the loop goes on by a jump, and is left by a call of what follows.
    called = SASS.replace(
        "@P1 BRA `(.L_x_1) ;\n        /*00b0*/                   EXIT ;",
        "@P1 CALL.REL.NOINC `(.L_x_5) ;\n        /*00a8*/                   BRA `(.L_x_1) ;\n"
        ".L_x_5:\n        /*00b0*/                   EXIT ;",
    )
    assert called != SASS
    (kernel,) = kernels_of(PTX, LOG, called)
    assert kernel.wide is not None
    assert kernel.wide.whole.instructions.total() == 10


@pytest.mark.parametrize(
    ("kernel", "goal"),
    [
        ("LayerNormForward<float, true>", 0.85),
        ("LayerNormForward<float, false>", None),
        ("LayerNormBackward<Half, true, false>", 0.85),
        ("GumbelSoftmax<Bfloat16, true>", 0.85),
        ("GumbelSoftmaxBackward<float, false>", None),
        ("GumbelSoftmaxBackwardBackward<float>", None),
        ("ByChannel<Normalize<float>, false>", 0.85),
        ("ByChannel<Normalize<float>, true>", None),
        ("ChannelRows<Moments<float>>", 0.85),
        ("PartialSums<float, 2, ProductTerm>", 0.85),
        ("TiledProduct<float>", None),
        ("MaskedSoftmaxBackward<float>", None),
        ("Map<float, 1, 2, SmoothBackward<Silu<float>>, (Access)2>", 0.75),
    ],
)
def test_budgets(kernel: str, goal: float | None) -> None:
    budget = budget_of(kernel, 4)
    assert budget is not None
    assert budget.goal == goal
    assert bool(budget.exempt) == (goal is None)


def test_the_lowest_shares() -> None:
    fast, slow = judged(NAME, SASS), judged(NAME, with_additions(372))
    (of_h200, of_h100) = worst([fast, slow]).values()
    assert of_h200 == {0.85: slow.share["H200"]}
    assert of_h100 == {0.85: slow.share["H100"]}


#: A kernel that is too slow by its arithmetic alone.
SLOW = """
namespace gradlint { namespace cuda {
struct Block {};
struct Slow {};
enum class Access : int { packs };
template <class T, int Out, int In, class Body, Access access>
struct Map {
  const uint4* x;
  uint4* y;
  __device__ void operator()() const {
    const int at = blockIdx.x * 256 + threadIdx.x;
    uint4 words = x[at];
#pragma unroll
    for (int i = 0; i < ROUNDS; ++i) {
      words.x = words.x * 5 ^ words.w;
      words.y = words.y * 5 ^ words.x;
      words.z = words.z * 5 ^ words.y;
      words.w = words.w * 5 ^ words.z;
    }
    y[at] = words;
  }
};
}
namespace device {
template <class Block, class Body>
__global__ void __launch_bounds__(256) run_body(Body body) { body(); }
template __global__ void run_body<cuda::Block, cuda::Map<float, 1, 1, cuda::Slow, cuda::Access(0)>>(
    cuda::Map<float, 1, 1, cuda::Slow, cuda::Access(0)>);
} }
"""


@needs_nvcc
@pytest.mark.parametrize(("rounds", "slow"), [("2", False), ("40", True)])
def test_a_planted_slow_kernel_is_found(tmp_path: Path, rounds: str, slow: bool) -> None:
    source = tmp_path / "slow.cu"
    source.write_text(SLOW.replace("ROUNDS", rounds), encoding="utf-8")
    report = report_kernels(("sm_90",), sources=[source])
    assert [item.ok for item in report.compiled] == [True], report.compiled[0].output
    (kernel,) = report.kernels
    assert kernel.kernel.startswith("Map<float, 1, 1, Slow")
    if not report.disassembled:
        pytest.skip("there is no nvdisasm")
    assert kernel.goal == 0.85
    assert (kernel.share["H200"] < 0.85) == slow
    assert [fault.partition("% ")[2] for fault in kernel.faults] == (
        ["of a copy's bandwidth predicted on H200, less than its goal of 85%"] if slow else []
    )


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
