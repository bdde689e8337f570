#include "search.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "threads.h"
#include "topk.h"

namespace unbounded {
namespace {

// Entries kept for each neighbour wanted, before the nearest are selected.
constexpr size_t kRoom = 2;

// Queries that are searched together at least: the more, the more of them share a list. In a large
// datastore one in so many entries: every query has lists of its own there, and to take these from
// memory takes longer than to look at them, unless enough queries wait for each. Of a block too small
// for that each thread takes an even part, if these are not too few.
constexpr size_t kTogether = 2048, kShared = 1024, kFewest = 64;

// About so many entries a limit is guessed from.
constexpr int64_t kSample = 1024;

constexpr int kBins = 64;

// The nearest lists that held `wanted` entries, the very nearest first; of two as near the older. Empty if together they held fewer, unless these are all lists. Only among those bins of
// distances where it becomes enough is there anything to sort.
std::vector<uint64_t> take_nearest(const uint32_t* bits, const uint32_t* numbers, size_t n,
                                   const std::vector<int64_t>& held_by, int64_t wanted) {
  uint32_t low, high;
  code_kernels().range(bits, n, &low, &high);
  int shift = 0;
  while (n && (high - low) >> shift >= kBins) ++shift;
  int64_t held[kBins] = {}, so_far = 0;
  for (size_t i = 0; i < n; ++i) held[(bits[i] - low) >> shift] += held_by[numbers[i]];
  uint32_t last = 0;
  while (last < kBins && so_far + held[last] < wanted) so_far += held[last++];
  std::vector<uint64_t> taken, parted;
  if (last == kBins && n < held_by.size()) return taken;
  for (size_t i = 0; i < n; ++i) {
    uint64_t packed = uint64_t{bits[i]} << 32 | numbers[i];
    uint32_t bin = (bits[i] - low) >> shift;
    if (bin < last) taken.push_back(packed);
    if (bin == last) parted.push_back(packed);
  }
  std::sort(parted.begin(), parted.end());
  for (uint64_t each : parted) {
    if (so_far >= wanted) break;
    taken.push_back(each);
    so_far += held_by[each & 0xFFFFFFFF];
  }
  std::swap(taken.front(), *std::min_element(taken.begin(), taken.end()));
  for (uint64_t& each : taken) each &= 0xFFFFFFFF;
  return taken;
}

}  // namespace

// A list and a query that looks into it, list by list; and how many entries a query sees.
struct Search::Visits {
  std::vector<std::pair<int32_t, uint32_t>> of;
  std::vector<int64_t> seen;
};

// What the queries of a part have kept.
struct Search::Part {
  std::vector<Kept> kept;
  size_t columns;
};

Search::Search(const Lists& lists, Coded& coded, int64_t k, bool own_past, const int64_t* words)
    : lists_(lists), coded_(coded), k_(static_cast<size_t>(k)), own_past_(own_past), words_(words) {
  choose(std::max<int64_t>(std::min(std::max(lists.settings.candidates * k, lists.settings.fewest), lists.entries()), 1));
  own_starts_.assign(lists.count() + 1, 0);
  if (own_past) sort_own();
}

// The nearest lists until they held `wanted` entries when lists were last split, so that the choice
// does not change in between.
void Search::choose(int64_t wanted) {
  const auto& kernels = code_kernels();
  const size_t count = static_cast<size_t>(lists_.count()), stride = lists_.stride();
  // Twice as many as it should take, and which are near is told by a sample of every eighth. Where
  // lists are short it takes more: then all are looked at.
  const size_t usual = 4 + static_cast<size_t>(2 * wanted * lists_.count() / std::max<int64_t>(lists_.entries(), 1));
  const size_t some = std::min(usual, count) / 8;
  const size_t rank = some + static_cast<size_t>(3 * std::sqrt(static_cast<double>(some))) + 1;
  chosen_.resize(coded_.size());
  in_parallel(coded_.size(), 256, [&](size_t start, size_t stop) {
    std::vector<float> distances(kTile * stride);
    std::vector<uint32_t> numbers(stride), near(count + 16), near_numbers(count + 16), sample;
    std::iota(numbers.begin(), numbers.end(), 0u);
    for (size_t first = start; first < stop; first += kTile) {
      int many = static_cast<int>(std::min<size_t>(kTile, stop - first));
      lists_.to_centroids(coded_, first, many, distances.data());
      for (int q = 0; q < many; ++q) {
        const uint32_t* bits = reinterpret_cast<const uint32_t*>(&distances[q * stride]);
        sample.clear();
        for (size_t i = 0; i < count; i += 8) sample.push_back(bits[i]);
        uint32_t limit = kInfinity;
        if (rank <= sample.size()) limit = std::min(limit, kth(kernels, sample.data(), sample.size(), rank, 2).high);
        size_t kept = kernels.keep(bits, numbers.data(), count, 0, limit, near.data(), near_numbers.data());
        auto taken = take_nearest(near.data(), near_numbers.data(), kept, lists_.settled, wanted);
        if (taken.empty()) taken = take_nearest(bits, numbers.data(), count, lists_.settled, wanted);
        chosen_[first + q].assign(taken.begin(), taken.end());
      }
    }
  });
}

std::vector<int32_t> Search::nearest_lists() const {
  std::vector<int32_t> found;
  for (const auto& lists : chosen_) found.push_back(lists[0]);
  return found;
}

void Search::sort_own() {
  size_t n = coded_.size(), count = static_cast<size_t>(lists_.count());
  auto list_of = [&](size_t t) { return static_cast<size_t>(chosen_[t][0]); };
  for (size_t t = 0; t < n; ++t) ++own_starts_[list_of(t) + 1];
  own_heads_.resize(count);
  int64_t chunks = 0;
  for (size_t list = 0; list < count; ++list) {
    own_heads_[list] = chunks;
    chunks += (own_starts_[list + 1] + kChunk - 1) / kChunk;
    own_starts_[list + 1] += own_starts_[list];
  }
  own_codes_.resize(static_cast<size_t>(chunks) * kChunkWords);
  own_tags_.resize(static_cast<size_t>(chunks) * kChunk);
  own_order_.resize(n);
  std::vector<int64_t> ends(own_starts_.begin(), own_starts_.end() - 1);
  for (size_t t = 0; t < n; ++t) {
    size_t list = list_of(t);
    uint32_t* code = &coded_.codes[t * kWords];
    code[kPosition] = static_cast<uint32_t>(lists_.entries() + static_cast<int64_t>(t));
    int64_t place = ends[list] - own_starts_[list];
    write_code(code, kWords, &own_codes_[(own_heads_[list] + place / kChunk) * kChunkWords],
               place % kChunk);
    if (words_) own_tags_[own_heads_[list] * kChunk + place] = tag_of(words_[t]);
    own_order_[ends[list]++] = static_cast<int64_t>(t);
  }
}

// How many of the block's own that go to a list came before a query.
int64_t Search::earlier(int64_t list, size_t query) const {
  if (!own_past_) return 0;
  auto first = own_order_.begin() + own_starts_[list], end = own_order_.begin() + own_starts_[list + 1];
  return std::lower_bound(first, end, static_cast<int64_t>(query)) - first;
}

Search::Visits Search::visits_of(size_t start, size_t stop) const {
  Visits visits;
  visits.seen.assign(stop - start, 0);
  std::vector<int64_t> ends(lists_.count() + 1, 0);
  for (size_t t = start; t < stop; ++t)
    for (int32_t list : chosen_[t]) {
      ++ends[list + 1];
      visits.seen[t - start] += lists_.lengths[list] + earlier(list, t);
    }
  for (size_t list = 1; list < ends.size(); ++list) ends[list] += ends[list - 1];
  visits.of.resize(ends.back());
  for (size_t t = start; t < stop; ++t)
    for (int32_t list : chosen_[t]) visits.of[ends[list]++] = {list, static_cast<uint32_t>(t)};
  return visits;
}

namespace {

// Queries that look into the same list, side by side; how many.
template <class Visit>
int fill(const std::vector<Visit>& visits, size_t at, const Coded& coded, const int64_t* words, Tile& tile) {
  int many = 0;
  for (; many < kTile && at + many < visits.size() && visits[at + many].first == visits[at].first; ++many) {
    size_t t = visits[at + many].second;
    std::memcpy(tile.axes[many], &coded.queries[t * kAxes], kAxes);
    tile.offset[many] = coded.offsets[t];
    tile.scale[many] = coded.scales[t];
    tile.target[many] = words ? tag_of(words[t]) : kNoTag;
  }
  return many;
}

// Keeps the k nearest of all that was kept, and from then on nothing further than these.
void narrow(const CodeKernels& kernels, Kept& kept, size_t k) {
  Last last = last_of(kernels, kept.bits, kept.positions, kept.count, k);
  int64_t count = 0;
  for (int64_t i = 0; i < kept.count; ++i) {
    const uint32_t bits = kept.bits[i], position = kept.positions[i];
    kept.bits[count] = bits, kept.positions[count] = position;
    count += bits < last.bits || (bits == last.bits && (position & ~kHit) <= last.position);
  }
  // What is as far as the last of them may still come and be older.
  kept.count = count, kept.limit = last.bits + 1;
}

}  // namespace

// A distance within which each query probably has k entries, and not many more, from some of the
// first entries of each list; infinite for a query that may keep everything.
void Search::guess(const Visits& visits, size_t start, Part& part) const {
  const auto& kernels = code_kernels();
  size_t n = part.kept.size();
  std::vector<int64_t> visited(n, 0);
  for (auto& visit : visits.of) ++visited[visit.second - start];
  Tile tile{};
  float found[kTile * kChunk];
  for (size_t at = 0; at < visits.of.size();) {
    int many = fill(visits.of, at, coded_, words_, tile);
    int32_t list = visits.of[at].first;
    // The next list lies anywhere: asked for while this one is looked at.
    int32_t head = lists_.heads[visits.of[std::min(at + many, visits.of.size() - 1)].first];
    for (int word = 0; head >= 0 && word < kChunkWords; word += kGroup) __builtin_prefetch(lists_.chunks[head] + word);
    if (lists_.lengths[list]) {
      kernels.distances(lists_.chunks[lists_.heads[list]], tile, many, found);
      for (int q = 0; q < many; ++q) {
        size_t i = visits.of[at + q].second - start;
        Kept& kept = part.kept[i];
        // One query that looks into thousands of lists must not make room for all of them.
        int64_t few = std::min({int64_t{kChunk}, std::max<int64_t>(kSample / visited[i], 1),
                                lists_.lengths[list], static_cast<int64_t>(part.columns) - kept.count});
        std::memcpy(kept.bits + kept.count, found + q * kChunk, few * sizeof(uint32_t));
        kept.count += few;
      }
    }
    at += many;
  }
  for (size_t i = 0; i < n; ++i) {
    Kept& kept = part.kept[i];
    kept.limit = kInfinity;
    if (visits.seen[i] > static_cast<int64_t>(part.columns) - kChunk && kept.count) {
      int64_t share = static_cast<int64_t>(k_) * kept.count / visits.seen[i];
      int64_t rank = share + share / 2 + 16;
      if (rank <= kept.count)
        kept.limit = std::min(kInfinity, kth(kernels, kept.bits, kept.count, rank, 8).high);
    }
    kept.count = 0;
  }
}

// Every visited list is gone through once for each tile of its queries; a query whose room is full
// keeps its nearest.
void Search::look(const Visits& visits, size_t start, Part& part) const {
  const auto& kernels = code_kernels();
  const int64_t most = static_cast<int64_t>(part.columns) - kChunk;
  Tile tile{};
  for (size_t at = 0; at < visits.of.size();) {
    int many = fill(visits.of, at, coded_, words_, tile);
    int32_t list = visits.of[at].first;
    int32_t following_head = lists_.heads[visits.of[std::min(at + many, visits.of.size() - 1)].first];
    // To ask for memory ahead never fails, so any address will do where there is no list behind.
    const uint32_t* behind = following_head < 0 ? lists_.centroids.data() : lists_.chunks[following_head];
    Kept* kept[kTile];
    int64_t valid[kTile], before[kTile];
    for (int q = 0; q < many; ++q) {
      kept[q] = &part.kept[visits.of[at + q].second - start];
      before[q] = earlier(list, visits.of[at + q].second);
    }
    auto scan = [&](const uint32_t* chunk, const uint16_t* tags, const uint32_t* next) {
      for (int q = 0; q < many; ++q)
        if (kept[q]->count > most) narrow(kernels, *kept[q], k_);
      kernels.scan(chunk, tags, next, tile, many, valid, kept);
    };
    int32_t chunk = lists_.heads[list];
    for (int64_t first = 0; first < lists_.lengths[list]; first += kChunk) {
      int32_t following = lists_.next[chunk];
      // Where the chunk behind it is, is asked for a chunk ahead too.
      __builtin_prefetch(&lists_.next[std::max(following, 0)]);
      std::fill(valid, valid + many, lists_.lengths[list] - first);
      scan(lists_.chunks[chunk], lists_.tags[chunk], following >= 0 ? lists_.chunks[following] : behind);
      chunk = following;
    }
    int64_t own = own_starts_[list + 1] - own_starts_[list];
    for (int64_t first = 0; first < own; first += kChunk) {
      int64_t own_chunk = own_heads_[list] + first / kChunk;
      const uint32_t* codes = &own_codes_[own_chunk * kChunkWords];
      for (int q = 0; q < many; ++q) valid[q] = before[q] - first;
      scan(codes, &own_tags_[own_chunk * kChunk], codes);
    }
    at += many;
  }
}

// For each query, in parts: found(query, kept), where at least k of all that it sees are kept.
template <class Found>
void Search::each(Found found) const {
  size_t n = coded_.size();
  size_t rows = std::max(kTogether, static_cast<size_t>(lists_.entries()) / kShared);
  // As many parts for each thread, none of them much longer than the others.
  size_t parts = std::max<size_t>(n / rows, 1), even = static_cast<size_t>(threads());
  parts = parts > even ? parts / even * even : std::max(parts, std::min(even, n / kFewest));
  in_parallel(n, (n + parts - 1) / parts, [&](size_t start, size_t stop) {
    Part part;
    part.columns = std::max(kRoom * k_ + kChunk, static_cast<size_t>(kSample));
    size_t columns = part.columns + 16;
    uint32_t* room = scratch<uint32_t>(2 * (stop - start) * columns);
    for (size_t i = 0; i < stop - start; ++i)
      part.kept.push_back({room + 2 * i * columns, room + (2 * i + 1) * columns, 0, kInfinity});
    Visits visits = visits_of(start, stop);
    guess(visits, start, part);
    look(visits, start, part);
    for (size_t t = start; t < stop; ++t) {
      Kept& kept = part.kept[t - start];
      int64_t seen = visits.seen[t - start];
      if (kept.count >= std::min(static_cast<int64_t>(k_), seen)) {
        found(t, kept);
        continue;
      }
      // The guess was too near: it looks again, with room for all that it sees.
      Part alone;
      alone.columns = static_cast<size_t>(seen) + 2 * kChunk;
      std::vector<uint32_t> all(2 * (alone.columns + 16));
      alone.kept.push_back({all.data(), all.data() + alone.columns + 16, 0, kInfinity});
      look(visits_of(t, t + 1), t, alone);
      found(t, alone.kept[0]);
    }
  });
}

void Search::neighbours(float* squared, int64_t* positions) const {
  const auto& kernels = code_kernels();
  each([&](size_t t, Kept& kept) {
    if (kept.count > static_cast<int64_t>(k_)) narrow(kernels, kept, k_);
    thread_local std::vector<uint64_t> packed;
    packed.resize(kept.count);
    for (int64_t i = 0; i < kept.count; ++i)
      packed[i] = uint64_t{kept.bits[i]} << 32 | (kept.positions[i] & ~kHit);
    write_nearest(packed, k_, 0, squared + t * k_, positions + t * k_);
  });
}

void Search::unordered(float* squared, uint32_t* positions) const {
  const auto& kernels = code_kernels();
  each([&](size_t t, Kept& kept) {
    if (kept.count > static_cast<int64_t>(k_)) narrow(kernels, kept, k_);
    const size_t count = static_cast<size_t>(kept.count);
    for (size_t i = 0; i < count; ++i) squared[t * k_ + i] = as_float(kept.bits[i]);
    for (size_t i = 0; i < count; ++i) positions[t * k_ + i] = kept.positions[i] & ~kHit;
    std::fill_n(squared + t * k_ + count, k_ - count, std::numeric_limits<float>::infinity());
  });
}

void Search::score(const Votes& votes, const int32_t* known, double* shares) const {
  const auto& kernels = code_kernels();
  each([&](size_t t, const Kept& kept) {
    size_t n = static_cast<size_t>(kept.count), k = std::min(k_, n);
    Ballot ballot{};
    ballot.bits = kept.bits, ballot.positions = kept.positions, ballot.count = n;
    if (k) {
      Last last = last_of(kernels, kept.bits, kept.positions, n, k);
      ballot.last_bits = last.bits, ballot.last_position = last.position;
    }
    ballot.words = known, ballot.known = lists_.entries(), ballot.own_words = words_;
    ballot.target = words_[t];
    count_votes(kernels, votes, ballot, shares + t * votes.columns());
  });
}

}  // namespace unbounded
