// SPDX-License-Identifier: Apache-2.0
// Counts the allocations of a process into which it is preloaded:
//
//   ALLOCATION_COUNTER=FILE LD_PRELOAD=.../liballocation_counter.so PROGRAM
//
// FILE then begins with a 64-bit number in the machine's byte order, the calls
// of malloc, calloc, realloc and their aligned kin, and of operator new, since
// the start; it is mapped, so it can be read at any time and costs the program
// no call. Without the variable nothing is counted.
//
// It forwards each call to the program's allocator: the next one in the order
// of libraries.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<uint64_t> uncounted{0};
std::atomic<std::atomic<uint64_t>*> counter{&uncounted};

void Count() {
  counter.load(std::memory_order_relaxed)
      ->fetch_add(1, std::memory_order_relaxed);
}

// dlsym() may allocate before the allocator is known: from here, for ever.
alignas(std::max_align_t) char early[16384];
std::atomic<size_t> early_used{0};

bool IsEarly(const void* memory) {
  return memory >= early && memory < early + sizeof(early);
}

void* EarlyAllocate(size_t size) {
  const size_t rounded =
      (size + alignof(std::max_align_t) - 1) & ~(alignof(std::max_align_t) - 1);
  const size_t at = early_used.fetch_add(rounded);
  if (at + rounded > sizeof(early)) abort();
  return early + at;  // all zeros: a static array, given once
}

thread_local bool resolving = false;

// The allocator's own function; null while it is being looked for.
template <typename Function>
Function* Next(std::atomic<Function*>* known, const char* name) {
  Function* function = known->load(std::memory_order_acquire);
  if (function != nullptr || resolving) return function;
  resolving = true;
  function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  resolving = false;
  if (function == nullptr) abort();
  known->store(function, std::memory_order_release);
  return function;
}

std::atomic<void* (*)(size_t)> next_malloc;
std::atomic<void* (*)(size_t, size_t)> next_calloc;
std::atomic<void* (*)(void*, size_t)> next_realloc;
std::atomic<void* (*)(size_t, size_t)> next_aligned_alloc;
std::atomic<int (*)(void**, size_t, size_t)> next_posix_memalign;
std::atomic<void (*)(void*)> next_free;

__attribute__((constructor)) void Open() {
  const char* path = getenv("ALLOCATION_COUNTER");
  if (path == nullptr) return;
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(uint64_t)) != 0) abort();
  void* page = mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE,
                    MAP_SHARED, file, 0);
  if (page == MAP_FAILED) abort();
  close(file);
  counter.store(new (page) std::atomic<uint64_t>(uncounted.load()));
}

void* New(size_t size) {
  void* memory = malloc(size == 0 ? 1 : size);
  if (memory == nullptr) abort();
  return memory;
}

void* NewAligned(size_t size, std::align_val_t alignment) {
  void* memory = nullptr;
  size_t at = static_cast<size_t>(alignment);
  if (at < sizeof(void*)) at = sizeof(void*);
  if (posix_memalign(&memory, at, size == 0 ? 1 : size) != 0) abort();
  return memory;
}

}  // namespace

extern "C" {

void* malloc(size_t size) {
  Count();
  auto* next = Next(&next_malloc, "malloc");
  return next == nullptr ? EarlyAllocate(size) : next(size);
}

void* calloc(size_t count, size_t size) {
  Count();
  auto* next = Next(&next_calloc, "calloc");
  return next == nullptr ? EarlyAllocate(count * size) : next(count, size);
}

void* realloc(void* memory, size_t size) {
  if (IsEarly(memory)) {
    void* copy = malloc(size);
    const size_t left =
        static_cast<size_t>(early + sizeof(early) - static_cast<char*>(memory));
    if (copy != nullptr) memcpy(copy, memory, size < left ? size : left);
    return copy;
  }
  Count();
  auto* next = Next(&next_realloc, "realloc");
  return next == nullptr ? EarlyAllocate(size) : next(memory, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  Count();
  return Next(&next_aligned_alloc, "aligned_alloc")(alignment, size);
}

void* memalign(size_t alignment, size_t size) {
  return aligned_alloc(alignment, size);
}

int posix_memalign(void** memory, size_t alignment, size_t size) {
  Count();
  return Next(&next_posix_memalign, "posix_memalign")(memory, alignment, size);
}

void free(void* memory) {
  if (IsEarly(memory)) return;
  if (auto* next = Next(&next_free, "free")) next(memory);
}

}  // extern "C"

// The allocator's own operators would not come by malloc's door.
void* operator new(size_t size) { return New(size); }
void* operator new[](size_t size) { return New(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return malloc(size == 0 ? 1 : size);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return malloc(size == 0 ? 1 : size);
}
void* operator new(size_t size, std::align_val_t alignment) {
  return NewAligned(size, alignment);
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return NewAligned(size, alignment);
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete[](void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t) noexcept { free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept {
  free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  free(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  free(memory);
}
