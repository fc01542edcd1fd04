// The parts of the kernels in which threads of a block share work.
#include <limits>

#include "common/map.h"
#include "common/matmul.h"
#include "common/team.h"
#include "trials.h"

namespace gradlint::cpu {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Rows with NaN behind them; tiles that are not full; a sum in `parts` parts.
std::string matmul(int64_t parts) {
  constexpr int64_t rows = 70, inner = 301, columns = 66, pitch = inner + 3;
  Floats a(rows * pitch, nan), b(columns * pitch, nan), out(rows * columns), expected(out.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < inner; ++k) a[i * pitch + k] = whole(i + 3 * k);
  }
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t k = 0; k < inner; ++k) b[j * pitch + k] = whole(5 * j + k);
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t k = 0; k < inner; ++k) {
        expected[i * columns + j] += a[i * pitch + k] * b[j * pitch + k];
      }
    }
  }
  Floats partial(parts * out.size());
  Product product{};
  product.dtype = Dtype::float32;
  product.batch = 1;
  product.rows = rows;
  product.inner = inner;
  product.columns = columns;
  product.a = {a.data(), 0, pitch, 1};
  product.b = {b.data(), 0, 1, pitch};
  product.out = out.data();
  product.parts = parts;
  product.partial = partial.data();
  multiply(context, product);
  return compared(out, expected);
}

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

struct Doubled {
  template <class W>
  void operator()(const W (&in)[1], W (&out)[1]) const {
    out[0] = 2 * in[0];
  }
};

// What stands behind the elements stays as it was. The first is `shift` elements from where an
// access of 16 bytes may begin.
std::string mapped(int64_t shift) {
  constexpr int64_t count = 2501, behind = 4096, most_shift = 4;
  alignas(16) static float memory[2][count + behind + most_shift];
  float *const in = memory[0] + shift, *const out = memory[1] + shift;
  Floats expected(count + behind, -1);
  for (int64_t i = 0; i < count + behind; ++i) in[i] = whole(i), out[i] = -1;
  for (int64_t i = 0; i < count; ++i) expected[i] = 2 * whole(i);
  Elements elements{};
  elements.dtype = Dtype::float32;
  elements.operands = 2;
  elements.axes = 1;
  elements.count = elements.shape[0] = count;
  elements.strides[0][0] = elements.strides[1][0] = 1;
  elements.data[0] = out;
  elements.data[1] = in;
  map<1, 1>(context, elements, Doubled{});
  return compared(Floats(out, out + count + behind), expected);
}

const Trials trials = {
    {"matmul", [] { return matmul(1); }},
    {"matmul in parts", [] { return matmul(3); }},
    {"team", team},
    {"block", block},
    {"map", [] { return mapped(0); }},
    {"map of what is not aligned", [] { return mapped(1); }},
};

}  // namespace
}  // namespace gradlint::cpu

int main(int count, char** arguments) {
  return gradlint::cpu::main_of(gradlint::cpu::trials, count, arguments);
}
