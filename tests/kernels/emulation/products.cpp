// Products of matrices, whose panels the threads of a block share.
#include <limits>

#include "common/matmul.h"
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

const Trials trials = {
    {"matmul", [] { return matmul(1); }},
    {"matmul in parts", [] { return matmul(3); }},
};

}  // namespace
}  // namespace gradlint::cpu

int main(int count, char** arguments) {
  return gradlint::cpu::main_of(gradlint::cpu::trials, count, arguments);
}
