#include "lists.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "threads.h"

namespace unbounded {
namespace {

constexpr int64_t kShortest = 256;  // a list is not split below this
constexpr int64_t kLongest = 4;     // a stretch between splits is at most so many usual ones
constexpr int kPowers = 5, kRounds = 4;

}  // namespace

Lists::Lists(Quantizer quantizer, const Settings& how)
    : settings(how), heads(1, -1), tails(1, -1), lengths(1, 0), settled(1, 0), centroids(kCentroidChunkWords, 0),
      quantizer_(std::move(quantizer)) {}

int64_t Lists::bytes() const {
  size_t per_list = sizeof(int32_t) * 2 + sizeof(int64_t) * 2;
  return static_cast<int64_t>(next.size() * ((kChunkWords + 1) * sizeof(uint32_t) + kChunk * sizeof(uint16_t)) +
                              lengths.size() * per_list + centroids.size() * sizeof(uint32_t) +
                              quantizer_.width() * kAxes * sizeof(float));
}

int64_t Lists::room() const {
  uint64_t stretches = static_cast<uint64_t>(entries_ / (settings.stretches * settings.split_every));
  int64_t doublings = std::min<int64_t>(std::bit_width(stretches), 8);
  int64_t stretch = settings.split_every * std::min(int64_t{1} << doublings, kLongest);
  return stretch - entries_ % stretch;
}

void Lists::restore() {
  entries_ = 0;
  for (int64_t each : lengths) entries_ += each;
}

void Lists::to_centroids(const Coded& coded, size_t first, int many, float* out) const {
  Tile tile{};
  for (int q = 0; q < many; ++q) {
    size_t t = first + q;
    std::memcpy(tile.axes[q], &coded.queries[t * kAxes], kAxes);
    tile.offset[q] = coded.offsets[t] + coded.totals[t];
    tile.scale[q] = coded.scales[t] / 16.0f;
  }
  const auto& kernels = code_kernels();
  for (size_t chunk = 0; chunk * kChunk < lengths.size(); ++chunk)
    kernels.centroids(&centroids[chunk * kCentroidChunkWords], tile, many, out + chunk * kChunk, stride());
}

std::vector<int32_t> Lists::assign(const Coded& coded) const {
  std::vector<int32_t> found(coded.size());
  in_parallel(coded.size(), 256, [&](size_t start, size_t stop) {
    std::vector<float> distances(kTile * stride());
    for (size_t first = start; first < stop; first += kTile) {
      int many = static_cast<int>(std::min<size_t>(kTile, stop - first));
      to_centroids(coded, first, many, distances.data());
      for (int q = 0; q < many; ++q) {
        const float* row = &distances[q * stride()];
        // A list even where every distance is too large for a float.
        float best = std::numeric_limits<float>::infinity();
        for (size_t i = 0; i < lengths.size(); ++i)
          if (row[i] < best) best = row[i], found[first + q] = static_cast<int32_t>(i);
      }
    }
  });
  return found;
}

void Lists::append(uint32_t* codes, const int32_t* to, const int64_t* words, size_t n) {
  bool due = static_cast<int64_t>(n) == room();
  for (size_t i = 0; i < n; ++i) {
    codes[i * kWords + kPosition] = static_cast<uint32_t>(entries_ + static_cast<int64_t>(i));
    push(to[i], codes + i * kWords, words ? tag_of(words[i]) : 0);
  }
  entries_ += static_cast<int64_t>(n);
  if (due) split_long_lists();
}

void Lists::retag(const int32_t* words) {
  for (size_t list = 0; list < lengths.size(); ++list) {
    int32_t chunk = heads[list];
    for (int64_t i = 0; i < lengths[list]; ++i) {
      int64_t slot = i % kChunk;
      uint32_t at = chunks[chunk][slot / kGroup * kGroup * kWords + kPosition * kGroup + slot % kGroup];
      tags[chunk][slot] = tag_of(words[at]);
      if (slot == kChunk - 1) chunk = next[chunk];
    }
  }
}

void Lists::push(int64_t list, const uint32_t* code, uint16_t tag) {
  int64_t slot = lengths[list] % kChunk;
  if (slot == 0) {
    int32_t taken = static_cast<int32_t>(free);
    if (taken >= 0) {
      free = next[taken];
    } else {
      taken = static_cast<int32_t>(next.size());
      next.push_back(-1);
      chunks.reserve(next.size());
      tags.reserve(next.size());
    }
    next[taken] = -1;
    if (lengths[list] == 0)
      heads[list] = taken;
    else
      next[tails[list]] = taken;
    tails[list] = taken;
  }
  write_code(code, kWords, chunks[tails[list]], slot);
  tags[tails[list]][slot] = tag;
  ++lengths[list];
}

void Lists::take_apart(int64_t list, std::vector<uint32_t>& codes, std::vector<uint16_t>& tagged) {
  codes.resize(lengths[list] * kWords);
  tagged.resize(lengths[list]);
  int32_t chunk = heads[list];
  for (int64_t i = 0; i < lengths[list]; ++i) {
    read_code(chunks[chunk], i % kChunk, kWords, &codes[i * kWords]);
    tagged[i] = tags[chunk][i % kChunk];
    if (i % kChunk == kChunk - 1) chunk = next[chunk];
  }
  if (lengths[list]) {
    next[tails[list]] = static_cast<int32_t>(free);
    free = heads[list];
  }
  lengths[list] = 0;
}

void Lists::split_long_lists() {
  int64_t longest = std::max(kShortest, static_cast<int64_t>(0.7 * std::sqrt(static_cast<double>(entries_))));
  std::vector<int64_t> waiting;
  for (int64_t list = 0; list < count(); ++list)
    if (lengths[list] > longest) waiting.push_back(list);
  while (!waiting.empty()) {
    int64_t list = waiting.back(), added = count();
    waiting.pop_back();
    split(list);
    for (int64_t each : {list, added})
      if (lengths[each] > longest) waiting.push_back(each);
  }
  settled = lengths;
}

namespace {

// Places along the axes, both by entry and by axis: sums over axes are then taken for sixteen
// entries side by side, sums over entries for sixteen axes, each sum still in order.
struct Places {
  explicit Places(size_t n) : length(n), padded((n + 15) / 16 * 16), rows(n * kAxes), columns(kAxes * padded) {}

  // For each entry the sum over axes of (place - from) * direction.
  void project(const float* from, const float* direction, float* out) const {
    std::fill(out, out + padded, 0.0f);
    for (int axis = 0; axis < kAxes; ++axis) {
      const float* column = &columns[axis * padded];
      for (size_t i = 0; i < padded; ++i) out[i] += (column[i] - from[axis]) * direction[axis];
    }
  }

  size_t length, padded;
  std::vector<float> rows, columns;
};

float dot(const float* a, const float* b) {
  float sum = 0;
  for (int axis = 0; axis < kAxes; ++axis) sum += a[axis] * b[axis];
  return sum;
}

// 0 or 1 for each place, never all the same: across the longest direction, found by power
// iteration, then rounds of two-means. Entries that are all the same are halved by age.
std::vector<int8_t> sides_of(const Places& places) {
  size_t n = places.length;
  float mean[kAxes] = {}, direction[kAxes], nothing[kAxes] = {};
  for (size_t i = 0; i < n; ++i)
    for (int axis = 0; axis < kAxes; ++axis) mean[axis] += places.rows[i * kAxes + axis];
  for (int axis = 0; axis < kAxes; ++axis) mean[axis] /= static_cast<float>(n);
  for (int axis = 0; axis < kAxes; ++axis) direction[axis] = places.rows[axis] - mean[axis];
  std::vector<float> along(places.padded);
  for (int power = 0; power < kPowers; ++power) {
    places.project(mean, direction, along.data());
    float turned[kAxes] = {};
    for (size_t i = 0; i < n; ++i)
      for (int axis = 0; axis < kAxes; ++axis)
        turned[axis] += along[i] * (places.rows[i * kAxes + axis] - mean[axis]);
    float size = std::sqrt(dot(turned, turned));
    if (!(size > 0)) break;
    for (int axis = 0; axis < kAxes; ++axis) direction[axis] = turned[axis] / size;
  }
  std::vector<int8_t> sides(n);
  float level = dot(mean, direction);
  for (int round = 0; round <= kRounds; ++round) {
    places.project(nothing, direction, along.data());
    size_t ones = 0;
    for (size_t i = 0; i < n; ++i) ones += sides[i] = along[i] > level;
    if (ones == 0 || ones == n) {
      for (size_t i = 0; i < n; ++i) sides[i] = i >= n / 2;
      return sides;
    }
    float means[2][kAxes] = {};
    for (size_t i = 0; i < n; ++i)
      for (int axis = 0; axis < kAxes; ++axis) means[sides[i]][axis] += places.rows[i * kAxes + axis];
    float both[kAxes];
    for (int axis = 0; axis < kAxes; ++axis) {
      means[1][axis] /= static_cast<float>(ones);
      means[0][axis] /= static_cast<float>(n - ones);
      direction[axis] = means[1][axis] - means[0][axis];
      both[axis] = means[1][axis] + means[0][axis];
    }
    level = dot(direction, both) / 2.0f;
  }
  return sides;
}

}  // namespace

void Lists::split(int64_t list) {
  std::vector<uint32_t> codes;
  std::vector<uint16_t> tagged;
  take_apart(list, codes, tagged);
  size_t n = codes.size() / kWords;
  Places places(n);
  for (size_t i = 0; i < n; ++i) {
    float* row = &places.rows[i * kAxes];
    quantizer_.decode(&codes[i * kWords], row);
    for (int axis = 0; axis < kAxes; ++axis) places.columns[axis * places.padded + i] = row[axis];
  }
  std::vector<int8_t> sides = sides_of(places);
  int64_t added = count();
  heads.push_back(-1), tails.push_back(-1), lengths.push_back(0), settled.push_back(0);
  if (added % kChunk == 0) centroids.resize(centroids.size() + kCentroidChunkWords, 0);
  for (int side = 0; side < 2; ++side) {
    int64_t each = side ? added : list;
    float middle[kAxes] = {};
    for (size_t i = 0; i < n; ++i)
      if (sides[i] == side) {
        for (int axis = 0; axis < kAxes; ++axis) middle[axis] += places.rows[i * kAxes + axis];
        push(each, &codes[i * kWords], tagged[i]);
      }
    for (int axis = 0; axis < kAxes; ++axis) middle[axis] /= static_cast<float>(lengths[each]);
    uint32_t code[kCentroidWords];
    quantizer_.encode_centroid(middle, code);
    write_code(code, kCentroidWords, &centroids[each / kChunk * kCentroidChunkWords], each % kChunk);
  }
}

}  // namespace unbounded
