#include "shared_memory.h"

#include <algorithm>

namespace gradlint::emulation {
namespace {

constexpr unsigned char poison = 0xff;  // NaN in every floating type, -1 in every integer
constexpr size_t guard = 256;           // bytes before and behind each span
constexpr size_t widest = 16;           // alignment

size_t aligned(size_t position, size_t alignment) {
  return (position + alignment - 1) / alignment * alignment;
}

}  // namespace

void SharedMemory::begin(size_t size) {
  used_ = size;
  spans_.assign(1, {nullptr, guard, guard + size});
  bytes_.reserve(limit * 2 + size);  // room for guards: what was handed out never moves
  bytes_.assign(aligned(guard + size + guard, widest), poison);
}

void* SharedMemory::array(const void* key, size_t size, size_t alignment) {
  for (const Span& span : spans_) {
    if (span.key == key) return bytes_.data() + span.first;
  }
  used_ += size;
  const size_t first = aligned(bytes_.size(), alignment), end = first + size + guard;
  if (used_ > limit || end > bytes_.capacity()) return nullptr;
  spans_.push_back({key, first, first + size});
  bytes_.resize(end, poison);
  return bytes_.data() + first;
}

bool SharedMemory::whole() const {
  size_t from = 0;
  for (const Span& span : spans_) {
    const auto untouched = [](unsigned char byte) { return byte == poison; };
    if (!std::all_of(bytes_.begin() + from, bytes_.begin() + span.first, untouched)) return false;
    from = span.last;
  }
  return std::all_of(bytes_.begin() + from, bytes_.end(),
                     [](unsigned char byte) { return byte == poison; });
}

}  // namespace gradlint::emulation
