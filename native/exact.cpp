#include "exact.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "threads.h"
#include "topk.h"

namespace unbounded {

namespace {

// Where a squared distance is less than this share of the two squared norms, too much has cancelled
// in |q|^2 + |x|^2 - 2 q.x, and it is taken from the difference. Narrow keys cancel sooner, and cost
// little: there all are.
constexpr float kCancelled = 0.25f;
constexpr size_t kNarrow = 32, kLook = 64;

// Queries whose distances are taken together, so that each key is taken from memory once for all;
// fewer where they see few keys, for each is measured against what any of them sees.
constexpr int64_t kLeastRows = 16, kMostRows = 48;

}  // namespace

// For each query: found(query, number of the first key, distances as bits, how many).
template <class Found>
void Exact::each(Found found) const {
  const auto& kernels = exact_kernels();
  if (n == 0) return;
  int64_t oldest = *std::min_element(low, low + n), newest = std::max(oldest, *std::max_element(high, high + n));
  std::vector<float> norms(static_cast<size_t>(newest - oldest));
  in_parallel(norms.size(), 1024, [&](size_t start, size_t stop) {
    kernels.norms(keys + (static_cast<size_t>(oldest) + start) * width, stop - start, width, &norms[start]);
  });
  size_t together = static_cast<size_t>(std::clamp((high[0] - low[0]) / 8, kLeastRows, kMostRows));
  in_parallel(n, together, [&](size_t start, size_t stop) {
    int64_t first = *std::min_element(low + start, low + stop);
    int64_t end = std::max(first, *std::max_element(high + start, high + stop));
    size_t m = static_cast<size_t>(end - first), rows = stop - start;
    thread_local std::vector<float> products;
    products.resize(std::max(products.size(), rows * m));
    const float* seen = keys + first * static_cast<int64_t>(width);
    const float* lengths = norms.data() + (first - oldest);
    if (width > kNarrow) kernels.dots(queries + start * width, rows, seen, m, width, products.data(), m);
    for (size_t t = start; t < stop; ++t) {
      const float* query = queries + t * width;
      float norm;
      kernels.norms(query, 1, width, &norm);
      size_t from = static_cast<size_t>(low[t] - first), to = static_cast<size_t>(std::max(high[t] - first, low[t] - first));
      float* row = &products[(t - start) * m];
      for (size_t start_of = from; start_of < to; start_of += kLook) {
        // Nearly always none of so many has cancelled.
        size_t end_of = std::min(start_of + kLook, to);
        if (width > kNarrow && !kernels.expand(norm, lengths + start_of, end_of - start_of, kCancelled, row + start_of))
          continue;
        for (size_t i = start_of; i < end_of; ++i)
          if (width <= kNarrow || !(row[i] >= kCancelled * (norm + lengths[i])))
            row[i] = kernels.squared_distance(query, seen + i * width, width);
      }
      found(t, first + static_cast<int64_t>(from), reinterpret_cast<const uint32_t*>(row + from), to - from);
    }
  });
}

void Exact::neighbours(size_t k, float* squared, int64_t* numbers) const {
  each([&](size_t t, int64_t first, const uint32_t* bits, size_t m) {
    thread_local std::vector<uint64_t> packed;
    packed.resize(m);
    for (size_t i = 0; i < m; ++i) packed[i] = uint64_t{bits[i]} << 32 | i;
    write_nearest(packed, k, first, squared + t * k, numbers + t * k);
  });
}

void Exact::score(size_t k, const Votes& votes, const int32_t* words, const int64_t* targets, double* shares) const {
  const auto& kernels = code_kernels();
  each([&](size_t t, int64_t first, const uint32_t* bits, size_t m) {
    thread_local std::vector<uint32_t> places, kept_bits, kept_places;
    for (auto* each : {&places, &kept_bits, &kept_places}) each->resize(std::max(each->size(), m + 16));
    for (size_t i = 0; i < m; ++i)
      places[i] = static_cast<uint32_t>(i) | (words[first + i] == targets[t] ? kHit : 0);
    Ballot ballot{};
    ballot.bits = bits, ballot.positions = places.data(), ballot.count = m;
    ballot.last_bits = kInfinity, ballot.last_position = ~kHit;
    if (m > k) {
      Last last = last_of(kernels, bits, places.data(), m, k);
      ballot.count = kernels.keep(bits, places.data(), m, 0, last.bits + 1, kept_bits.data(), kept_places.data());
      ballot.bits = kept_bits.data(), ballot.positions = kept_places.data();
      ballot.last_bits = last.bits, ballot.last_position = last.position;
    } else if (m) {
      uint32_t nearest;
      kernels.range(bits, m, &nearest, &ballot.last_bits);
    }
    ballot.words = words + first, ballot.known = static_cast<int64_t>(m);
    ballot.target = targets[t];
    count_votes(kernels, votes, ballot, shares + t * votes.columns());
  });
}

void Exact::score(size_t k, const Votes& votes, const int32_t* words, const int64_t* targets,
                  const Elsewhere& elsewhere, double* shares, float* furthest) const {
  const auto& kernels = code_kernels();
  size_t room = 16;
  for (const auto& part : elsewhere.found) room += part.columns;
  each([&](size_t t, int64_t first, const uint32_t* bits, size_t m) {
    thread_local std::vector<uint32_t> all, places, kept_bits, kept_places;
    thread_local std::vector<int32_t> said;
    thread_local std::vector<int64_t> positions;
    for (auto* each : {&all, &places, &kept_bits, &kept_places}) each->resize(std::max(each->size(), m + room));
    said.resize(all.size()), positions.resize(all.size());
    size_t n = 0;
    for (const auto& part : elsewhere.found)
      for (size_t i = t * part.columns; i < (t + 1) * part.columns; ++i, ++n) {
        all[n] = as_bits(part.squared[i] + 0.0f);  // no minus
        positions[n] = elsewhere.parts * part.entries[i] + static_cast<int64_t>(part.number);
      }
    for (size_t i = 0; i < m; ++i, ++n) all[n] = bits[i], positions[n] = elsewhere.keys + first + static_cast<int64_t>(i);
    // Words lie anywhere, and the loads do not wait for one another here.
    for (size_t i = 0; i < n; ++i) said[i] = words[positions[i]];
    for (size_t i = 0; i < n; ++i) places[i] = static_cast<uint32_t>(i) | (said[i] == targets[t] ? kHit : 0);
    const size_t there = kernels.count_below(all.data(), n, kInfinity), voting = std::min(k, there);
    Ballot ballot{};
    ballot.bits = kept_bits.data(), ballot.positions = kept_places.data(), ballot.last_position = ~kHit;
    ballot.words = said.data(), ballot.known = static_cast<int64_t>(n), ballot.target = targets[t];
    if (voting) {
      const Last last = last_of(kernels, all.data(), places.data(), n, voting);
      const size_t below = kernels.count_below(all.data(), n, last.bits);
      // Of those as far as the last the older vote, wherever they were found.
      std::vector<std::pair<int64_t, size_t>> as_far;
      for (size_t i = 0; i < n; ++i)
        if (all[i] == last.bits) as_far.emplace_back(positions[i], i);
      std::sort(as_far.begin(), as_far.end());
      for (size_t i = voting - below; i < as_far.size(); ++i) all[as_far[i].second] = kInfinity;
      ballot.count = kernels.keep(all.data(), places.data(), n, 0, last.bits + 1, kept_bits.data(), kept_places.data());
      ballot.last_bits = last.bits;
    }
    furthest[t] = there < k ? std::numeric_limits<float>::infinity() : as_float(ballot.last_bits);
    count_votes(kernels, votes, ballot, shares + t * votes.columns());
  });
}

}  // namespace unbounded
