// Small kernels that do what they must not, and what they should have done.
#include "trials.h"

namespace gradlint::cpu {
namespace {

// One block of two warps, or of `threads`, that runs body(block).
template <class Body>
auto misused(Body body, int threads = 64, size_t memory = 0) {
  return [=] {
    launch(context, 1, threads, memory, body);
    return std::string("nothing was found");
  };
}

struct Bounded {
  static constexpr int most_threads = 32;
  void operator()(const Block&) const {}
};

// A number that depends on which thread writes last.
std::string race() {
  float last = 0;
  launch(context, 1, 64, sizeof(float), [&](const Block& block) {
    float* const shared = static_cast<float*>(block.memory);
    *shared = static_cast<float>(block.thread);
    block.sync();
    if (block.thread == 0) last = *shared;
  });
  return std::to_string(last);
}

// Neighbours exchange through memory.
std::string warp(bool waits) {
  Floats out(32), expected;
  launch(context, 1, 32, 32 * sizeof(float), [&](const Block& block) {
    float* const shared = static_cast<float*>(block.memory);
    shared[block.thread] = whole(block.thread);
    if (waits) __syncwarp();
    out[block.thread] = shared[block.thread ^ 1];
  });
  for (int i = 0; i < 32; ++i) expected.push_back(whole(i ^ 1));
  return compared(out, expected);
}

const Trials trials = {
    {"race", race},
    {"warp", [] { return warp(true); }},
    {"warp without waiting", [] { return warp(false); }},
    {"early end", misused([](const Block& block) {
       if (block.thread != 5) block.sync();
     })},
    {"two barriers", misused([](const Block& block) {
       float* const shared = static_cast<float*>(block.memory);
       if (block.thread < 32) {
         shared[block.thread] = 1;
         block.sync();
       } else {
         block.sync();
         shared[block.thread] = 2;
       }
     }, 64, 64 * sizeof(float))},
    {"fewer rounds", misused([](const Block& block) {
       for (int i = block.thread == 40 ? 1 : 0; i < 3; ++i) block.sync();
     })},
    {"half a warp", misused([](const Block& block) {
       if (block.thread % 32 < 16) __shfl_xor_sync(0xffffffffu, 1.0f, 1);
     })},
    {"barrier for an exchange", misused([](const Block& block) {
       if (block.thread == 33) block.sync();
       __shfl_xor_sync(0xffffffffu, 1.0f, 1);
       if (block.thread != 33) block.sync();
     })},
    {"not in the mask", misused([](const Block&) { __shfl_xor_sync(0x0000ffffu, 1.0f, 1); })},
    {"from outside the mask", misused([](const Block& block) {
       if (block.thread % 32 < 16) __shfl_xor_sync(0x0000ffffu, 1.0f, 16);
     })},
    {"beyond the memory", misused([](const Block& block) {
       static_cast<float*>(block.memory)[block.thread] = 1;
     }, 64, 63 * sizeof(float))},
    {"beyond an array", misused([](const Block& block) {
       device::shared<float[8]>()[block.thread / 7] = 1;
     })},
    {"unwritten memory", [] {
       Floats out(1);
       launch(context, 1, 32, sizeof(float), [&](const Block& block) {
         out[0] = *static_cast<float*>(block.memory);
       });
       return compared(out, {0});
     }},
    {"too much memory", misused([](const Block&) {}, 64, 49153)},
    {"too large an array", misused([](const Block&) {
       device::shared<float[12288]>()[0] = 1;
     }, 64, sizeof(float))},
    {"too many threads", misused([](const Block&) {}, 1056)},
    {"more threads than bounded", misused(Bounded{}, 64)},
    {"part of a warp", misused([](const Block&) {}, 48)},
};

}  // namespace
}  // namespace gradlint::cpu

int main(int count, char** arguments) {
  return gradlint::cpu::main_of(gradlint::cpu::trials, count, arguments);
}
