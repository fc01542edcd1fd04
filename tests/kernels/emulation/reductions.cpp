// Sums and maxima of teams and of blocks.
#include "common/team.h"
#include "trials.h"

namespace gradlint::cpu {
namespace {

// Two sums and a maximum of each team, one after the other.
struct TeamSums {
  int lanes;
  float* out;  // [block][thread][3]

  void operator()(const Block& block) const {
    const Team team{block.thread / lanes, block.thread % lanes, lanes, block.thread};
    const int64_t at = block.index * block.threads + block.thread;
    float sums[2] = {whole(at), whole(at + 1)}, again[2] = {whole(at + 2), whole(at + 3)};
    team.sum(sums);
    team.sum(again);
    out[3 * at] = sums[0] + sums[1];
    out[3 * at + 1] = again[0] - again[1];
    out[3 * at + 2] = team.max(whole(at));
  }
};

std::string team() {
  constexpr int64_t blocks = 2;
  for (int lanes = 1; lanes <= 512; lanes *= 2) {
    const int threads = lanes < 128 ? 128 : lanes;
    Floats out(3 * blocks * threads), expected;
    launch(context, blocks, threads, 0, TeamSums{lanes, out.data()});
    for (int64_t at = 0; at < blocks * threads; ++at) {
      float sum = 0, again = 0, largest = -5;
      for (int64_t i = at / lanes * lanes; i < (at / lanes + 1) * lanes; ++i) {
        sum += whole(i) + whole(i + 1);
        again += whole(i + 2) - whole(i + 3);
        largest = math::larger(largest, whole(i));
      }
      expected.insert(expected.end(), {sum, again, largest});
    }
    const std::string result = compared(out, expected);
    if (result != "right") return std::to_string(lanes) + " lanes: " + result;
  }
  return "right";
}

// Two sums and a maximum of each block.
struct BlockSums {
  float* out;  // [thread][3]

  void operator()(const Block& block) const {
    float* const own = out + 3 * block.thread;
    own[0] = block.sum(whole(block.thread));
    own[1] = block.sum(whole(block.thread + 1));
    own[2] = block.max(whole(block.thread));
  }
};

std::string block() {
  for (const int threads : {32, 96, 1024}) {
    Floats out(3 * threads), expected;
    float sum = 0, again = 0;
    for (int i = 0; i < threads; ++i) sum += whole(i), again += whole(i + 1);
    for (int i = 0; i < threads; ++i) expected.insert(expected.end(), {sum, again, 5});
    launch(context, 1, threads, 0, BlockSums{out.data()});
    const std::string result = compared(out, expected);
    if (result != "right") return std::to_string(threads) + " threads: " + result;
  }
  return "right";
}

const Trials trials = {
    {"team", team},
    {"block", block},
};

}  // namespace
}  // namespace gradlint::cpu

int main(int count, char** arguments) {
  return gradlint::cpu::main_of(gradlint::cpu::trials, count, arguments);
}
