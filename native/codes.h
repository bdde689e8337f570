// Keys as codes of sixty-four bytes: four bits for each of the 120 main axes, and the length.
//
// A key is also a query: eight bits an axis. The squared distance of a query to a code is
// offset + length(code) - scale * products, where products is a sum of integers: the same in any
// order, so a distance does not depend on who computes it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "isa.h"

namespace unbounded {

constexpr int kAxes = 120;
constexpr int kPadded = 128;
constexpr int kWords = 17;  // fifteen of axes, then the squared length, then the position
constexpr int kLength = 15;
constexpr int kPosition = 16;
constexpr int kCentroidWords = 31;  // a centroid is a finer code: eight bits an axis
constexpr int kGroup = 16;          // entries whose words lie side by side
constexpr int kChunk = 64;          // entries that are stored together
constexpr int kTile = 4;            // queries that look at a chunk together
constexpr int kChunkWords = kWords * kChunk;
constexpr int kCentroidChunkWords = kCentroidWords * kChunk;
constexpr uint32_t kHit = 0x80000000;       // on a kept position: its tag is the target's
constexpr uint32_t kInfinity = 0x7F800000;  // the bits of a float32 infinity

inline float as_float(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t as_bits(float value) { return std::bit_cast<uint32_t>(value); }

// Up to four queries side by side.
struct Tile {
  int8_t axes[kTile][kAxes];
  float offset[kTile], scale[kTile];
  uint32_t target[kTile];  // the tag of the word that came; kNoTag where none is asked for
};

// An entry's tag is the low half of its word: enough to tell nearly all words apart where entries
// are scanned, without a look at the word itself, which lies elsewhere.
constexpr uint32_t kNoTag = 0x10000;
inline uint16_t tag_of(int64_t word) { return static_cast<uint16_t>(word); }

// Where a query keeps what is near: distances as bits, positions, and how many.
struct Kept {
  uint32_t* bits;
  uint32_t* positions;
  int64_t count;
  uint32_t limit;
};

// A kernel K(sqrt(sharpness) d / theta), or several side by side, each twice as sharp as the one
// before. Theta is the bandwidth, or if that is 0 the distance to the furthest neighbour.
struct Votes {
  bool gaussian;
  float sharpness, bandwidth;
  int kernels;
  const double* trust = nullptr;  // in each kernel, if only what they say together is wanted
  size_t columns() const { return trust ? 1 : static_cast<size_t>(kernels); }
};

// A word each neighbour votes for is compared with the target; the sums of the kernels' weights.
struct Ballot {
  const uint32_t* bits;
  const uint32_t* positions;
  size_t count;
  uint32_t last_bits, last_position;  // the furthest neighbour that votes
  const int32_t* words;               // by position
  int64_t known;                      // how many of them; the block's own follow
  const int64_t* own_words;
  int64_t target;
  bool gaussian;
  float nearest, scale;
  int kernels;     // each twice as sharp as the one before
  uint32_t* room;  // for twice as many, and 32
};

// The inner loops, one set for each instruction set, all with the same bits (votes: nearly).
struct CodeKernels {
  // A key less the mean along every axis; axes are rows of kPadded.
  void (*project)(const float* key, const float* mean, const float* axes, size_t width, float* along);
  // Distances of the tile's first `many` queries to a chunk; each keeps those of its first
  // valid[q] entries that are below its limit. There must be room for a chunk more.
  void (*scan)(const uint32_t* chunk, const uint16_t* tags, const uint32_t* next, const Tile& tile,
               int many, const int64_t* valid, Kept* const* kept);
  // Distances of the tile's first `many` queries, or of all four, to a chunk of codes, or of centroids.
  void (*distances)(const uint32_t* chunk, const Tile& tile, int many, float* out);
  void (*centroids)(const uint32_t* chunk, const Tile& tile, int many, float* out, size_t stride);
  // How many of n are below a limit.
  size_t (*count_below)(const uint32_t* bits, size_t n, uint32_t limit);
  // Copies those with low <= bits < high and their companions; may write over all n places.
  size_t (*keep)(const uint32_t* bits, const uint32_t* companions, size_t n, uint32_t low,
                 uint32_t high, uint32_t* kept_bits, uint32_t* kept_companions);
  // The least and the greatest of n; if there are none, the greatest and the least there can be.
  void (*range)(const uint32_t* bits, size_t n, uint32_t* least, uint32_t* most);
  // For each kernel the sum of weights, and of those whose word is the target.
  void (*vote)(const Ballot& ballot, double* hits, double* totals);
  // What each of n neighbours counts when the kernels are trusted so: their shares, mixed, in doubles.
  // Nothing for those at infinity.
  void (*mix)(const Votes& votes, const float* squared, size_t n, double* mixed);
};

KERNELS(CodeKernels, code_kernels)

inline const CodeKernels& code_kernels() { return FOR_ISA(code_kernels); }

// The axes along which a sample of keys varies most, and a step along each.
class Quantizer {
 public:
  // Mean of `width`, axes as rows of kAxes, kAxes steps.
  Quantizer(const float* mean, const float* axes, const float* steps, size_t width);

  size_t width() const { return mean_.size(); }
  const float* steps() const { return steps_.data(); }
  const float* mean() const { return mean_.data(); }
  const float* axes() const { return axes_.data(); }  // rows of kPadded

  // A place along the axes as a code (its position is left alone), as a centroid, and as a query.
  void encode(const float* along, uint32_t* code) const;
  void encode_centroid(const float* along, uint32_t* code) const;
  void quantize_query(const float* along, int8_t* query, float* offset, float* scale,
                      float* total) const;
  void decode(const uint32_t* code, float* along) const;

 private:
  std::vector<float> mean_, axes_, steps_;
};

// Keys both as they are stored and as they ask.
struct Coded {
  explicit Coded(size_t n)
      : codes(n * kWords), queries(n * kAxes), offsets(n), scales(n), totals(n) {}
  size_t size() const { return offsets.size(); }

  std::vector<uint32_t> codes;
  std::vector<int8_t> queries;
  std::vector<float> offsets, scales;
  std::vector<float> totals;  // what to add to an offset to ask a centroid, at a scale / 16
};

// Each key by itself: its code never depends on the keys beside it.
Coded encode(const Quantizer& quantizer, const float* keys, size_t n);

}  // namespace unbounded
