// Memory that grows without moving: slabs of chunks on large pages where there are any.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace unbounded {

// Pages of nobody's file, zero until written on; large ones from `large` bytes on if the system has
// them, which is a wish: where it has none nothing changes.
class Pages {
 public:
  explicit Pages(size_t bytes, bool large) : bytes_(bytes) {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    data_ = at;
    if (large) enlarge();
  }
  ~Pages() { munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  void enlarge() {
#ifdef MADV_HUGEPAGE
    (void)madvise(data_, bytes_, MADV_HUGEPAGE);
#endif
  }
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

// A thread's own room to work in, kept for the next time: new pages cost more than what is
// written on them.
inline uint32_t* scratch(size_t words) {
  thread_local std::unique_ptr<Pages> kept;
  size_t bytes = words * sizeof(uint32_t);
  if (!kept || kept->bytes() < bytes) {
    kept.reset();
    kept = std::make_unique<Pages>(bytes + bytes / 8, bytes > (1u << 22));
  }
  return static_cast<uint32_t*>(kept->data());
}

}  // namespace unbounded
