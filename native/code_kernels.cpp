// The inner loops over codes, compiled once for each instruction set.
#include <cstring>

#include "codes.h"
#include "lanes.h"

namespace unbounded::ISA {
namespace {

// Sixteen lanes, whatever the registers hold.
typedef float Floats16 __attribute__((vector_size(64)));
typedef int32_t Ints16 __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(64)));
typedef uint16_t Tags __attribute__((vector_size(32)));
typedef double Doubles8 __attribute__((vector_size(64)));

// Products and sums by themselves, not fused: the same bits everywhere.
void project(const float* key, const float* mean, const float* axes, size_t width, float* along) {
  Floats16 sums[kPadded / 16] = {};
  for (size_t i = 0; i < width; ++i) {
    float value = key[i] - mean[i];
    for (int part = 0; part < kPadded / 16; ++part)
      sums[part] += value * load<Floats16>(axes + i * kPadded + 16 * part);
  }
  for (int part = 0; part < kPadded / 16; ++part) store(along + 16 * part, sums[part]);
}

inline void fetch(const uint32_t* line) { __builtin_prefetch(line, 0, 3); }

// Products of bytes, added up in sixteen lanes, of each query and a group of sixteen codes (or
// centroids). A level of eight bits is taken as two of four where sums would overflow.
#if defined(ISA_avx512)

template <int kQueries, bool kCentroid>
inline void products(const uint32_t* group, const Tile& tile, Ints16* sums) {
  const __m512i low = _mm512_set1_epi32(0x0F0F0F0F);
  __m512i total[kQueries], other[kQueries];
  for (int q = 0; q < kQueries; ++q) total[q] = other[q] = _mm512_setzero_si512();
  constexpr int words = kCentroid ? kAxes / 4 : kAxes / 8;
#pragma GCC unroll 30
  for (int w = 0; w < words; ++w) {
    __m512i packed = _mm512_loadu_si512(group + w * kGroup);
    __m512i first = kCentroid ? packed : _mm512_and_si512(packed, low);
    __m512i second = _mm512_and_si512((__m512i)((Words)packed >> 4), low);
#pragma GCC unroll 4
    for (int q = 0; q < kQueries; ++q) {
      const int8_t* axes = tile.axes[q] + (kCentroid ? 4 : 8) * w;
      if (kCentroid && w % 2) {
        other[q] = _mm512_dpbusd_epi32(other[q], first, _mm512_set1_epi32(load<int32_t>(axes)));
        continue;
      }
      total[q] = _mm512_dpbusd_epi32(total[q], first, _mm512_set1_epi32(load<int32_t>(axes)));
      if (!kCentroid)
        other[q] = _mm512_dpbusd_epi32(other[q], second, _mm512_set1_epi32(load<int32_t>(axes + 4)));
    }
  }
  for (int q = 0; q < kQueries; ++q) sums[q] = (Ints16)_mm512_add_epi32(total[q], other[q]);
}

#else

// Sums of twelve products of four bits and eight fit into sixteen bits; then they are folded.
constexpr int kStretch = 3;

typedef int16_t Shorts __attribute__((vector_size(32)));
typedef int32_t Sums __attribute__((vector_size(32)));
typedef uint32_t Packed __attribute__((vector_size(32)));

// Products of bytes, two of them in each sum.
inline Shorts multiply(Packed levels, int32_t axes) {
  const Sums asked = Sums{} + axes;
#if defined(ISA_avx2)
  return (Shorts)_mm256_maddubs_epi16((__m256i)levels, (__m256i)asked);
#else
  const Shorts a = (Shorts)levels, b = (Shorts)asked;
  return (a & 255) * ((b << 8) >> 8) + ((a >> 8) & 255) * (b >> 8);
#endif
}

// Two sums in each, times a weight.
inline Sums fold(Shorts sums, int16_t weight) {
#if defined(ISA_avx2)
  return (Sums)_mm256_madd_epi16((__m256i)sums, _mm256_set1_epi16(weight));
#else
  const Sums both = (Sums)sums;
  return (((both << 16) >> 16) + (both >> 16)) * weight;
#endif
}

template <int kQueries, bool kCentroid>
inline void products(const uint32_t* group, const Tile& tile, Ints16* sums) {
  constexpr int words = kCentroid ? kAxes / 4 : kAxes / 8;
  Sums total[kQueries][2] = {};
  // Eight bits in two goes: there are registers for the sums of one.
  for (int go = 0; go < (kCentroid ? 2 : 1); ++go) {
    for (int start = 0; start < words; start += kCentroid ? 2 * kStretch : kStretch) {
      Shorts some[kQueries][2] = {};
#pragma GCC unroll 6
      for (int w = start; w < start + (kCentroid ? 2 * kStretch : kStretch); ++w)
        for (int upper = kCentroid ? go : 0; upper < (kCentroid ? go + 1 : 2); ++upper)
          for (int side = 0; side < 2; ++side) {
            Packed levels = load<Packed>(group + w * kGroup + 8 * side) >> (upper ? 4 : 0) & 0x0F0F0F0F;
#pragma GCC unroll 4
            for (int q = 0; q < kQueries; ++q) {
              int32_t axes = load<int32_t>(tile.axes[q] + (kCentroid ? 4 * w : 8 * w + 4 * upper));
              some[q][side] += multiply(levels, axes);
            }
          }
      for (int q = 0; q < kQueries; ++q)
        for (int side = 0; side < 2; ++side)
          total[q][side] += fold(some[q][side], kCentroid && go == 1 ? 16 : 1);
    }
  }
  for (int q = 0; q < kQueries; ++q) std::memcpy(&sums[q], total[q], sizeof(Ints16));
}

#endif

inline Floats16 squared(Ints16 sums, Floats16 lengths, float offset, float scale) {
  Floats16 found = (offset + lengths) - scale * __builtin_convertvector(sums, Floats16);
  return found > 0 ? found : Floats16{};
}

#if defined(ISA_avx2)
// Where the lanes of eight that a mask names are, in their order.
struct Orders {
  uint32_t lanes[256][8];
  constexpr Orders() : lanes{} {
    for (int mask = 0; mask < 256; ++mask)
      for (int lane = 0, count = 0; lane < 8; ++lane)
        if (mask >> lane & 1) lanes[mask][count++] = lane;
  }
};
constexpr Orders kOrders;
#endif

// The lanes whose highest bit is set.
inline uint32_t mask_of(Words words) {
#if defined(ISA_avx512)
  return _mm512_movepi32_mask((__m512i)words);
#elif defined(ISA_avx2)
  __m256 halves[2];
  std::memcpy(halves, &words, sizeof halves);
  return static_cast<uint32_t>(_mm256_movemask_ps(halves[0]) | _mm256_movemask_ps(halves[1]) << 8);
#else
  uint32_t mask = 0;
  for (int lane = 0; lane < 16; ++lane) mask |= (words[lane] >> 31) << lane;
  return mask;
#endif
}

// Keeps those of sixteen that a mask names.
inline void keep_group(uint32_t mask, Words bits, Words companions, Kept& kept) {
#if defined(ISA_avx512)
  store(kept.bits + kept.count, _mm512_maskz_compress_epi32(static_cast<__mmask16>(mask), (__m512i)bits));
  store(kept.positions + kept.count, _mm512_maskz_compress_epi32(static_cast<__mmask16>(mask), (__m512i)companions));
  kept.count += __builtin_popcount(mask);
#elif defined(ISA_avx2)
  for (int side = 0; side < 2; ++side) {
    const auto half = [&](const Words& all) { return load<__m256i>(reinterpret_cast<const __m256i*>(&all) + side); };
    const uint32_t here = mask >> (8 * side) & 255;
    const __m256i order = load<__m256i>(kOrders.lanes[here]);
    store(kept.bits + kept.count, _mm256_permutevar8x32_epi32(half(bits), order));
    store(kept.positions + kept.count, _mm256_permutevar8x32_epi32(half(companions), order));
    kept.count += __builtin_popcount(here);
  }
#else
  for (int lane = 0; lane < 16; ++lane) {
    kept.bits[kept.count] = bits[lane];
    kept.positions[kept.count] = companions[lane];
    kept.count += mask >> lane & 1;
  }
#endif
}

// Those of sixteen that are in [low, high), and only of the first `valid`, as a mask.
inline uint32_t within(Words bits, uint32_t low, uint32_t high, int64_t valid) {
  const uint32_t first = valid < 16 ? (1u << (valid < 0 ? 0 : valid)) - 1 : 0xFFFF;
#if defined(ISA_avx512)
  return _mm512_cmplt_epu32_mask((__m512i)bits, _mm512_set1_epi32((int)high)) &
         _mm512_cmpge_epu32_mask((__m512i)bits, _mm512_set1_epi32((int)low)) & first;
#else
  // Distances are not negative and limits at most infinity, so bits may be taken for signed.
  return mask_of((Words)(((Ints16)bits >= (int32_t)low) & ((Ints16)bits < (int32_t)high))) & first;
#endif
}

template <int kQueries>
void scan_by(const uint32_t* chunk, const uint16_t* tags, const uint32_t* next, const Tile& tile,
             const int64_t* valid, Kept* const* kept) {
  for (int g = 0; g < kChunk / kGroup; ++g) {
    const uint32_t* group = chunk + g * kGroup * kWords;
    // The chunk that follows lies anywhere: to wait for it would take longer than all this.
    for (int line = 0; line < kWords; ++line) fetch(next + (g * kWords + line) * kGroup);
    Ints16 sums[kQueries];
    products<kQueries, false>(group, tile, sums);
    Floats16 lengths = load<Floats16>(group + kLength * kGroup);
    Words positions = load<Words>(group + kPosition * kGroup);
    Words tag = __builtin_convertvector(load<Tags>(tags + g * kGroup), Words);
    for (int q = 0; q < kQueries; ++q) {
      Floats16 found = squared(sums[q], lengths, tile.offset[q], tile.scale[q]);
      Words hit = (Words)(tag == tile.target[q]) & kHit;
      keep_group(within((Words)found, 0, kept[q]->limit, valid[q] - g * kGroup), (Words)found, positions | hit, *kept[q]);
    }
  }
}

void scan(const uint32_t* chunk, const uint16_t* tags, const uint32_t* next, const Tile& tile,
          int many, const int64_t* valid, Kept* const* kept) {
  switch (many) {
    case 1: return scan_by<1>(chunk, tags, next, tile, valid, kept);
    case 2: return scan_by<2>(chunk, tags, next, tile, valid, kept);
    case 3: return scan_by<3>(chunk, tags, next, tile, valid, kept);
    default: return scan_by<4>(chunk, tags, next, tile, valid, kept);
  }
}

template <bool kCentroid, int kQueries>
void distances_by(const uint32_t* chunk, const Tile& tile, float* out, size_t stride) {
  constexpr int words = kCentroid ? kCentroidWords : kWords;
  constexpr int length = kCentroid ? kCentroidWords - 1 : kLength;
  for (int g = 0; g < kChunk / kGroup; ++g) {
    const uint32_t* group = chunk + g * kGroup * words;
    Ints16 sums[kQueries];
    products<kQueries, kCentroid>(group, tile, sums);
    Floats16 lengths = load<Floats16>(group + length * kGroup);
    for (int q = 0; q < kQueries; ++q)
      store(out + q * stride + g * kGroup, squared(sums[q], lengths, tile.offset[q], tile.scale[q]));
  }
}

void distances(const uint32_t* chunk, const Tile& tile, int many, float* out) {
  return (many == 1 ? distances_by<false, 1> : distances_by<false, kTile>)(chunk, tile, out, kChunk);
}

void centroids(const uint32_t* chunk, const Tile& tile, int many, float* out, size_t stride) {
  return (many == 1 ? distances_by<true, 1> : distances_by<true, kTile>)(chunk, tile, out, stride);
}

size_t count_below(const uint32_t* bits, size_t n, uint32_t limit) {
  uint32_t count = 0;
  for (size_t i = 0; i < n; ++i) count += bits[i] < limit;
  return count;
}

size_t keep(const uint32_t* bits, const uint32_t* companions, size_t n, uint32_t low, uint32_t high,
            uint32_t* kept_bits, uint32_t* kept_companions) {
  Kept kept{kept_bits, kept_companions, 0, high};
  size_t i = 0;
  for (; i + 16 <= n; i += 16)
    keep_group(within(load<Words>(bits + i), low, high, 16), load<Words>(bits + i), load<Words>(companions + i), kept);
  for (; i < n; ++i)
    if (bits[i] >= low && bits[i] < high) {
      kept_bits[kept.count] = bits[i];
      kept_companions[kept.count++] = companions[i];
    }
  return static_cast<size_t>(kept.count);
}

// The least and the greatest of n.
void range(const uint32_t* bits, size_t n, uint32_t* least, uint32_t* most) {
  uint32_t low = ~0u, high = 0;
  for (size_t i = 0; i < n; ++i) low = bits[i] < low ? bits[i] : low;
  for (size_t i = 0; i < n; ++i) high = bits[i] > high ? bits[i] : high;
  *least = low, *most = high;
}

// Both halves of sixteen, added up as doubles.
inline Doubles8 halves(Floats16 all) {
#if defined(ISA_avx512)
  return _mm512_cvtps_pd(_mm512_castps512_ps256((__m512)all)) + _mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)all, 1));
#else
  typedef float Half __attribute__((vector_size(32)));
  float lanes[16];
  store(lanes, all);
  return __builtin_convertvector(load<Half>(lanes), Doubles8) + __builtin_convertvector(load<Half>(lanes + 8), Doubles8);
#endif
}

// For each kernel, at most so many, the sum of what n neighbours up to the last that votes weigh.
template <int kKernels>
void weigh(const Ballot& b, const uint32_t* all_bits, const uint32_t* all_positions, size_t n, double* totals) {
  Doubles8 sums[kKernels] = {};
  uint32_t rest_bits[16], rest_positions[16];
  for (size_t i = 0; i < n; i += 16) {
    const uint32_t *bits = all_bits + i, *positions = all_positions + i;
    if (n - i < 16) {
      // Nobody at infinity fills up the last group.
      for (int lane = 0; lane < 16; ++lane) rest_bits[lane] = kInfinity, rest_positions[lane] = ~kHit;
      std::memcpy(rest_bits, bits, (n - i) * sizeof(uint32_t));
      std::memcpy(rest_positions, positions, (n - i) * sizeof(uint32_t));
      bits = rest_bits, positions = rest_positions;
    }
    Words far = load<Words>(bits), where = load<Words>(positions) & ~kHit;
    Words counted = (Words)((far < b.last_bits) | ((far == b.last_bits) & (where <= b.last_position)));
    Floats16 weight = 1.0f - (Floats16)far * b.scale;
    if (b.gaussian) {
      const Floats16 x = (b.nearest - (Floats16)far) * b.scale;
      weight = x > -87.0f ? exp(x) : Floats16{};
    }
    weight = weight > 0 ? weight : Floats16{};
    weight = (Floats16)((Words)weight & counted);
    for (int j = 0; j < kKernels; ++j) {
      sums[j] += halves(weight);
      weight = weight * weight;
    }
  }
  for (int j = 0; j < b.kernels; ++j) {
    totals[j] = 0;
    for (int lane = 0; lane < 8; ++lane) totals[j] += sums[j][lane];
  }
}

void vote(const Ballot& b, double* hits, double* totals) {
  // Words lie anywhere in memory: only those of which the tag is right are looked at, all together,
  // so that none waits for another.
  Kept same{b.room, b.room + b.count + 16, 0, 0};
  for (size_t i = 0; i < b.count; i += 16) {
    Words far{}, said{};
    const size_t many = b.count - i < 16 ? b.count - i : 16;
    std::memcpy(&far, b.bits + i, many * sizeof(uint32_t));
    std::memcpy(&said, b.positions + i, many * sizeof(uint32_t));
    if (const uint32_t mask = mask_of(said)) keep_group(mask, far, said & ~kHit, same);
  }
  for (int64_t i = 0; i < same.count; ++i) {
    const int64_t at = same.positions[i];
    const int64_t word = at < b.known ? b.words[at] : b.own_words[at - b.known];
    same.bits[i] = word == b.target ? same.bits[i] : kInfinity;
  }
  const auto add_up = b.kernels > 4 ? weigh<8> : weigh<4>;
  add_up(b, b.bits, b.positions, b.count, totals);
  add_up(b, same.bits, same.positions, static_cast<size_t>(same.count), hits);
}

// Calls for all of n numbers: eight at a time, and the rest one by one.
template <class Each>
inline void by_eight(double* x, size_t n, Each each) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) store(x + i, each(load<Doubles8>(x + i)));
  for (; i < n; ++i) x[i] = each(x[i]);
}

void mix(const Votes& votes, const float* squared, size_t n, double* mixed) {
  float nearest = __builtin_inff(), furthest = 0;
  for (size_t i = 0; i < n; ++i) {
    nearest = squared[i] < nearest ? squared[i] : nearest;
    furthest = squared[i] > furthest && squared[i] < __builtin_inff() ? squared[i] : furthest;
  }
  const double theta = votes.bandwidth > 0 ? double(votes.bandwidth) * votes.bandwidth : furthest;
  const double scale = votes.sharpness / (theta > 0 ? theta : 1.0), half = scale / 2;
  for (size_t i = 0; i < n; ++i) {
    const double edge = 1 - squared[i] * scale;
    mixed[i] = votes.gaussian ? (double(nearest) - squared[i]) * half : edge > 0 ? edge : 0.0;
  }
  if (votes.gaussian) {
    size_t i = 0;
    for (; i + kDoubles <= n; i += kDoubles) store(mixed + i, exp(load<Doubles>(mixed + i)));
    Doubles rest = {};
    std::memcpy(&rest, mixed + i, (n - i) * sizeof(double));
    rest = exp(rest);
    std::memcpy(mixed + i, &rest, (n - i) * sizeof(double));
  }
  for (size_t i = 0; i < n; ++i) mixed[i] = squared[i] < __builtin_inff() ? mixed[i] : 0.0;
  double totals[8] = {};
  const auto add_up = [&] {
    Doubles8 sums[8] = {};
    by_eight(mixed, n, [&](auto weight) {
      const auto first = weight;
      for (int j = 0; j < votes.kernels; ++j, weight *= weight)
        if constexpr (sizeof(weight) > sizeof(double)) sums[j] += weight;
        else totals[j] += weight;
      return first;
    });
    for (int j = 0; j < votes.kernels; ++j) totals[j] += sum(sums[j]);
  };
  add_up();
  if (!(totals[0] > 0)) {
    for (size_t i = 0; i < n; ++i) mixed[i] = squared[i] == nearest && nearest < __builtin_inff();
    add_up();
  }
  double parts[8];
  for (int j = 0; j < votes.kernels; ++j) parts[j] = totals[j] > 0 ? votes.trust[j] / totals[j] : 0;
  by_eight(mixed, n, [&](auto weight) {
    auto all = parts[0] * weight;
    for (int j = 1; j < votes.kernels; ++j) all += parts[j] * (weight *= weight);
    return all;
  });
}

}  // namespace

const CodeKernels code_kernels{project, scan, distances, centroids, count_below, keep, range, vote, mix};

}  // namespace unbounded::ISA
