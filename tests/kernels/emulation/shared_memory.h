// The memory that the threads of a block share: nothing is in it when the block begins, and
// nothing may be written beside what was asked for.
#pragma once

#include <cstddef>
#include <vector>

namespace gradlint::emulation {

class SharedMemory {
 public:
  static constexpr size_t limit = 48 << 10;  // bytes of a block that has not asked for more

  // For the next block, which launches with `size` bytes.
  void begin(size_t size);

  // Those bytes.
  void* launched() { return bytes_.data() + spans_.front().first; }

  // The array that a block has for `key`; null where there is no room left.
  void* array(const void* key, size_t size, size_t alignment);

  // Whether `address` is in it.
  bool holds(const void* address) const {
    return address >= bytes_.data() && address < bytes_.data() + bytes_.size();
  }

  // Whether nothing was written beside.
  bool whole() const;

 private:
  struct Span {
    const void* key;
    size_t first, last;
  };

  size_t used_ = 0;
  std::vector<Span> spans_;
  std::vector<unsigned char> bytes_;
};

}  // namespace gradlint::emulation
