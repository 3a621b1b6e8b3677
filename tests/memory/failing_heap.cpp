#include "failing_heap.hpp"

#include <cstdlib>
#include <new>

thread_local int headroom::test::allocations_left = -1;

void* operator new(std::size_t bytes) {
  int& left = headroom::test::allocations_left;
  if (left >= 0 && left-- == 0) throw std::bad_alloc();
  void* const data = std::malloc(bytes > 0 ? bytes : 1);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t /*bytes*/) noexcept { std::free(data); }
