// Accesses of threads to the same memory that nothing orders: what is right in one order of the
// threads is wrong in another. Barriers of a block order accesses; blocks have no order.
//
// Code that is compiled with -fsanitize=thread tells of each access (races.cpp has what it calls).
// As in Serebryany and Iskhodzhanov 2009, "ThreadSanitizer: data race detection in practice", each
// byte has a record of who was there last.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace gradlint::emulation {

struct Access {
  static constexpr int nobody = -1, several = -2;

  int block = nobody;
  int barriers = 0;  // that the block has passed
  int thread = nobody;
};

class Races {
 public:
  // For the next launch, which comes after all that was before.
  void begin() { pages_.clear(); }

  // Takes note of an access to `size` bytes, shared by the threads of one block or by all. What is
  // wrong with it, else an empty text.
  std::string noted(const Access& now, bool write, bool shared, const void* address, size_t size);

 private:
  static constexpr uintptr_t page_size = 4096;  // bytes

  struct Byte {
    Access written, read;
  };

  Byte& at(uintptr_t address);

  std::unordered_map<uintptr_t, std::unique_ptr<std::array<Byte, page_size>>> pages_;
};

}  // namespace gradlint::emulation
