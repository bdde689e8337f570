// Memory that grows without moving: slabs of chunks on large pages where there are any.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace unbounded {

// Pages of nobody's file, zero until written on; `large` ones are a wish: where the system has none
// nothing changes.
class Pages {
 public:
  Pages(size_t bytes, bool large) : bytes_(bytes) {
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    if (large) (void)madvise(data_, bytes_, MADV_HUGEPAGE);
#else
    (void)large;
#endif
  }
  ~Pages() { munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_;
  size_t bytes_;
};

// Blocks of a fixed size, found by number; those that are there never move.
template <class T, int kBlock>
class Slabs {
 public:
  static constexpr size_t kSlab = 8192;  // blocks; for codes seventeen large pages exactly

  T* operator[](size_t block) const { return slabs_[block / kSlab] + block % kSlab * kBlock; }

  // Room for so many blocks in all.
  void reserve(size_t blocks) {
    while (slabs_.size() * kSlab < blocks) {
      // The first one only once it is worth it: a small datastore takes small pages.
      owned_.push_back(std::make_unique<Pages>(kSlab * kBlock * sizeof(T), !slabs_.empty()));
      slabs_.push_back(static_cast<T*>(owned_.back()->data()));
    }
  }

  // Take over `blocks` that lie at an address, whole slabs where they are, which must stay there.
  void adopt(T* data, size_t blocks) {
    slabs_.clear();
    owned_.clear();
    for (size_t at = 0; at + kSlab <= blocks; at += kSlab) slabs_.push_back(data + at * kBlock);
    size_t had = slabs_.size() * kSlab;
    reserve(blocks);
    if (blocks > had)
      std::copy(data + had * kBlock, data + blocks * kBlock, slabs_.back());
  }

 private:
  std::vector<T*> slabs_;
  std::vector<std::unique_ptr<Pages>> owned_;
};

// A vector that begins where a line of the cache does: no load of a whole register touches two.
template <class T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64))); }
  void deallocate(T* p, size_t) { ::operator delete(p, std::align_val_t(64)); }
  bool operator==(const LineAllocator&) const { return true; }
};
template <class T>
using Aligned = std::vector<T, LineAllocator<T>>;

// A thread's own room to work in, not cleared and kept for the next time: new pages cost more than
// what is written on them. Each `kWhich` is another room.
template <class T, int kWhich = 0>
T* scratch(size_t size) {
  thread_local std::unique_ptr<Pages> kept;
  size_t bytes = size * sizeof(T);
  if (!kept || kept->bytes() < bytes) {
    kept.reset();
    kept = std::make_unique<Pages>(bytes + bytes / 8 + 1, bytes > (1u << 22));
  }
  return static_cast<T*>(kept->data());
}

}  // namespace unbounded
