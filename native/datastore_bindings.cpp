// Lists of codes for Python: arrays in, arrays out.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <algorithm>

#include "arrays.h"
#include "exact.h"
#include "search.h"

namespace unbounded {
namespace {

using nb::handle;

Votes votes_of(bool gaussian, float sharpness, float bandwidth, int kernels) {
  require(kernels > 0 && kernels <= 8 && sharpness > 0 && bandwidth >= 0, "no such kernel of votes");
  return {gaussian, sharpness, bandwidth, kernels};
}

// Lists, and a log of the codes that came since a delta was last asked for, once one was.
class QuantizedLists {
 public:
  QuantizedLists(const QuantizedLists&) = delete;
  QuantizedLists(handle mean, handle axes, handle steps, int64_t split_every, int64_t candidates, int64_t fewest,
                 int64_t stretches)
      : lists(quantizer(mean, axes, steps), {split_every, candidates, fewest, stretches}) {
    require(std::min({split_every, candidates, fewest, stretches}) > 0, "split_every, candidates, fewest and stretches must be at least 1");
  }

  static Quantizer quantizer(handle mean, handle axes, handle steps) {
    Array<const float, 1> means(mean, "mean"), step(steps, "steps");
    Array<const float, 2> axis(axes, "axes");
    require(means.size() > 0 && axis.size(0) == means.size() && axis.size(1) == kAxes && step.size() == kAxes,
            "axes are not a row of 120 for each of the mean's dimensions, with 120 steps");
    return Quantizer(means.data(), axis.data(), step.data(), means.size());
  }

  Array<const float, 2> keys(handle rows, const char* name) const {
    Array<const float, 2> found(rows, name);
    require(found.size(1) == lists.quantizer().width(),
            std::string(name) + " are " + std::to_string(found.size(1)) + " wide, these lists hold keys " +
                std::to_string(lists.quantizer().width()) + " wide");
    // What is not finite stays so when it is multiplied by nothing and added up.
    float sum = 0;
    for (size_t i = 0; i < found.size(0) * found.size(1); ++i) sum += 0.0f * found[i];
    require(sum == 0, std::string(name) + " are not all finite");
    return found;
  }

  void append(Coded& coded, const std::vector<int32_t>& to, const int64_t* words) {
    lists.append(coded.codes.data(), to.data(), words, to.size());
    if (following) {
      came_codes.insert(came_codes.end(), coded.codes.begin(), coded.codes.end());
      came_lists.insert(came_lists.end(), to.begin(), to.end());
    }
  }

  void add(handle rows, handle words) {
    auto block = keys(rows, "keys");
    Array<const int64_t, 1> came(words, "words");
    require(came.size() == block.size(), std::to_string(came.size()) + " words for " + std::to_string(block.size()) + " keys");
    nb::gil_scoped_release release;
    for (size_t start = 0; start < block.size();) {
      size_t n = std::min<size_t>(block.size() - start, lists.room());
      Coded coded = encode(lists.quantizer(), block.row(start), n);
      append(coded, lists.assign(coded), came.data() + start);
      start += n;
    }
  }

  // Neighbours of each row; with `own_past` as if each had been added after it was searched for.
  nb::tuple search(handle rows, int64_t k, bool own_past) {
    auto block = keys(rows, "queries");
    size_t n = block.size();
    int64_t seen = lists.entries() + (own_past && n ? static_cast<int64_t>(n) - 1 : 0);
    require(k > 0, "k is " + std::to_string(k) + "; a search needs at least 1 neighbour");
    k = std::min(k, seen);
    auto squared = new_array<float, 2>({n, static_cast<size_t>(k)});
    auto positions = new_array<int64_t, 2>({n, static_cast<size_t>(k)});
    if (n) {
      nb::gil_scoped_release release;
      Coded coded = encode(lists.quantizer(), block.data(), n);
      Search found(lists, coded, k, own_past, nullptr);
      if (k) found.neighbours(squared.data(), positions.data());
    }
    return nb::make_tuple(squared, as_int64(positions));
  }

  // Each kernel's probability of each word just before it came; then add the keys.
  nb::ndarray<nb::numpy, double> score(handle rows, handle words, handle known_words, int64_t k, bool gaussian,
                                       float sharpness, float bandwidth, int kernels) {
    return count(rows, words, known_words, k, votes_of(gaussian, sharpness, bandwidth, kernels), true);
  }

  // What entries vote for without a look at the other queries; changes nothing.
  nb::ndarray<nb::numpy, double> vote(handle rows, handle words, handle known_words, int64_t k, bool gaussian,
                                      float sharpness, float bandwidth, int kernels) {
    return count(rows, words, known_words, k, votes_of(gaussian, sharpness, bandwidth, kernels), false);
  }

  nb::ndarray<nb::numpy, double> count(handle rows, handle words, handle known_words, int64_t k, const Votes& votes, bool learn) {
    auto block = keys(rows, "keys");
    Array<const int64_t, 1> targets(words, "words");
    Array<const int32_t, 1> known(known_words, "known_words");
    size_t n = block.size();
    require(targets.size() == n, std::to_string(targets.size()) + " words for " + std::to_string(n) + " keys");
    require(static_cast<int64_t>(known.size()) == lists.entries(),
            std::to_string(known.size()) + " known words for " + std::to_string(lists.entries()) + " entries");
    require(k > 0, "k is " + std::to_string(k) + "; a search needs at least 1 neighbour");
    require(!learn || static_cast<int64_t>(n) <= lists.room(), "the block is longer than there is room for");
    auto shares = new_array<double, 2>({n, static_cast<size_t>(votes.kernels)});
    if (n) {
      nb::gil_scoped_release release;
      Coded coded = encode(lists.quantizer(), block.data(), n);
      Search found(lists, coded, std::min(k, lists.entries() + (learn ? static_cast<int64_t>(n) - 1 : 0)), learn, targets.data());
      found.score(votes, known.data(), shares.data());
      if (learn) append(coded, found.nearest_lists(), targets.data());
    }
    return shares;
  }

  // The state, as it lies on disk.
  nb::dict state() const {
    size_t taken = lists.next.size(), width = lists.quantizer().width();
    auto codes = new_array<uint32_t, 2>({taken, kChunkWords});
    for (size_t chunk = 0; chunk < taken; ++chunk)
      std::copy_n(lists.chunks[chunk], kChunkWords, codes.data() + chunk * kChunkWords);
    auto axes = new_array<float, 2>({width, kAxes});
    for (size_t i = 0; i < width; ++i)
      std::copy_n(lists.quantizer().axes() + i * kPadded, kAxes, axes.data() + i * kAxes);
    auto centroids = new_array<uint32_t, 2>({lists.centroids.size() / kCentroidChunkWords, kCentroidChunkWords});
    std::copy(lists.centroids.begin(), lists.centroids.end(), centroids.data());
    int64_t counts[] = {lists.count(), static_cast<int64_t>(taken), lists.free};
    nb::dict found;
    found["codes"] = codes, found["axes"] = axes, found["centroids"] = centroids;
    found["next"] = copy(lists.next.data(), taken);
    found["heads"] = copy(lists.heads.data(), lists.heads.size());
    found["tails"] = copy(lists.tails.data(), lists.tails.size());
    found["lengths"] = as_int64(copy(lists.lengths.data(), lists.lengths.size()));
    found["settled"] = as_int64(copy(lists.settled.data(), lists.settled.size()));
    found["counts"] = as_int64(copy<int64_t>(counts, 3));
    found["mean"] = copy(lists.quantizer().mean(), width);
    found["steps"] = copy(lists.quantizer().steps(), kAxes);
    return found;
  }

  template <class T>
  static nb::ndarray<nb::numpy, T> copy(const T* from, size_t n) {
    auto array = new_array<T, 1>({n});
    std::copy(from, from + n, array.data());
    return array;
  }

  // Become what wrote the state. The codes may be kept where they are, and changed.
  void load(nb::dict state) {
    Array<uint32_t, 2> codes(state["codes"], "codes");
    Array<const int32_t, 1> next(state["next"], "next"), heads(state["heads"], "heads"), tails(state["tails"], "tails");
    Array<const int64_t, 1> lengths(state["lengths"], "lengths"), settled(state["settled"], "settled"), counts(state["counts"], "counts");
    Array<const uint32_t, 2> centroids(state["centroids"], "centroids");
    require(counts.size() == 3, "counts are not three numbers");
    size_t count = static_cast<size_t>(counts[0]), taken = static_cast<size_t>(counts[1]);
    size_t centroid_chunks = (count + kChunk - 1) / kChunk;
    bool fits = count > 0 && taken <= codes.size(0) && codes.size(1) == kChunkWords && taken <= next.size() &&
                counts[2] < static_cast<int64_t>(taken) && centroids.size(1) == kCentroidChunkWords &&
                centroids.size(0) >= centroid_chunks;
    for (size_t size : {heads.size(), tails.size(), lengths.size(), settled.size()}) fits = fits && size >= count;
    require(fits, "the arrays of the lists do not fit together");
    check_chains(next, heads, lengths, count, taken, counts[2]);
    lists.next.assign(next.data(), next.data() + taken);
    lists.heads.assign(heads.data(), heads.data() + count);
    lists.tails.assign(tails.data(), tails.data() + count);
    lists.lengths.assign(lengths.data(), lengths.data() + count);
    lists.settled.assign(settled.data(), settled.data() + count);
    lists.centroids.assign(centroids.data(), centroids.data() + centroid_chunks * kCentroidChunkWords);
    lists.free = counts[2];
    lists.chunks.adopt(codes.data(), taken);
    lists.tags.reserve(taken);
    lists.restore();
    adopted = state["codes"];
    following = false;
    came_codes.clear(), came_lists.clear();
  }

  // Every chunk is in one chain at most, and each chain is as long as its list: no damage may lead
  // a search outside of its memory.
  static void check_chains(const Array<const int32_t, 1>& next, const Array<const int32_t, 1>& heads,
                           const Array<const int64_t, 1>& lengths, size_t count, size_t taken, int64_t free) {
    std::vector<bool> seen(taken, false);
    auto follow = [&](int64_t chunk, int64_t chunks) {
      for (int64_t i = 0; chunks < 0 ? chunk >= 0 : i < chunks; ++i) {
        if (chunk < 0 || chunk >= static_cast<int64_t>(taken) || seen[chunk]) throw std::invalid_argument("the chains of the lists are damaged");
        seen[chunk] = true;
        chunk = next[chunk];
      }
    };
    for (size_t list = 0; list < count; ++list) {
      if (lengths[list] < 0 || lengths[list] > static_cast<int64_t>(taken) * kChunk) throw std::invalid_argument("the lengths of the lists are damaged");
      follow(heads[list], (lengths[list] + kChunk - 1) / kChunk);
    }
    follow(free, -1);
  }

  // Codes and lists of the entries from number `first` on; None if the log does not reach back to it.
  // It is kept from there on, or from now on, so that who never asks pays nothing.
  nb::object since(int64_t first) {
    const int64_t logged = following ? static_cast<int64_t>(came_lists.size()) : 0, before = lists.entries() - logged;
    require(first >= 0 && first <= lists.entries(), "there are " + std::to_string(lists.entries()) + " entries, and none since " + std::to_string(first));
    nb::object found = nb::none();
    const int64_t dropped = first < before ? logged : first - before;
    came_codes.erase(came_codes.begin(), came_codes.begin() + dropped * kWords);
    came_lists.erase(came_lists.begin(), came_lists.begin() + dropped);
    if (first >= before) {
      auto codes = new_array<uint32_t, 2>({came_lists.size(), kWords});
      std::copy(came_codes.begin(), came_codes.end(), codes.data());
      nb::dict arrays;
      arrays["codes"] = codes, arrays["lists"] = copy(came_lists.data(), came_lists.size());
      found = arrays;
    }
    following = true;
    return found;
  }

  // Append codes to their lists, which are split where they were split before.
  void grow(handle new_codes, handle new_lists) {
    Array<const uint32_t, 2> codes(new_codes, "codes");
    Array<const int32_t, 1> to(new_lists, "lists");
    require(codes.size(1) == kWords && codes.size(0) == to.size(), "codes are not a row of 17 for each list");
    for (size_t start = 0; start < to.size();) {
      size_t n = std::min<size_t>(to.size() - start, lists.room());
      auto worst = std::minmax_element(to.data() + start, to.data() + start + n);
      require(*worst.first >= 0 && *worst.second < lists.count(), "a list beyond the " + std::to_string(lists.count()) + " that there are; the state is damaged");
      std::vector<uint32_t> some(codes.row(start), codes.row(start + n));
      lists.append(some.data(), to.data() + start, nullptr, n);
      start += n;
    }
    came_codes.clear(), came_lists.clear();
  }

  // Tell what word came at each entry, once arrays were loaded or codes were grown.
  void retag(handle words) {
    Array<const int32_t, 1> came(words, "words");
    require(static_cast<int64_t>(came.size()) == lists.entries(), std::to_string(came.size()) + " words for " + std::to_string(lists.entries()) + " entries");
    lists.retag(came.data());
  }

  nb::tuple encoded(handle rows) const {
    auto block = keys(rows, "keys");
    Coded coded = encode(lists.quantizer(), block.data(), block.size());
    auto codes = new_array<uint32_t, 2>({block.size(), kWords});
    auto queries = new_array<int8_t, 2>({block.size(), kAxes});
    std::copy(coded.codes.begin(), coded.codes.end(), codes.data());
    std::copy(coded.queries.begin(), coded.queries.end(), queries.data());
    return nb::make_tuple(codes, queries, copy(coded.offsets.data(), block.size()),
                          copy(coded.scales.data(), block.size()), copy(coded.totals.data(), block.size()));
  }

  Lists lists;
  bool following = false;
  std::vector<uint32_t> came_codes;
  std::vector<int32_t> came_lists;
  nb::object adopted;  // kept alive: the first chunks may lie in it
};

// Queries and keys for exact search, of which query t sees those from low[t] to high[t] - 1.
struct ExactArrays {
  ExactArrays(handle queries, handle keys, handle low, handle high)
      : asked(queries, "queries"), held(keys, "keys"), from(low, "low"), to(high, "high") {
    require(asked.size(1) == held.size(1), "queries are " + std::to_string(asked.size(1)) + " wide, keys " + std::to_string(held.size(1)));
    require(from.size() == asked.size() && to.size() == asked.size(), "low and high are not one number for each query");
    bool inside = true;
    for (size_t t = 0; t < asked.size(); ++t)
      inside = inside && from[t] >= 0 && from[t] <= to[t] && to[t] <= static_cast<int64_t>(held.size());
    require(inside, "a query sees keys that there are not");
  }
  Exact exact() const { return {asked.data(), asked.size(), held.data(), asked.size(1), from.data(), to.data()}; }

  Array<const float, 2> asked, held;
  Array<const int64_t, 1> from, to;
};

nb::tuple exact_search(handle queries, handle keys, handle low, handle high, int64_t k) {
  ExactArrays arrays(queries, keys, low, high);
  require(k >= 0, "k is negative");
  auto squared = new_array<float, 2>({arrays.asked.size(), static_cast<size_t>(k)});
  auto numbers = new_array<int64_t, 2>({arrays.asked.size(), static_cast<size_t>(k)});
  nb::gil_scoped_release release;
  if (k) arrays.exact().neighbours(static_cast<size_t>(k), squared.data(), numbers.data());
  nb::gil_scoped_acquire acquire;
  return nb::make_tuple(squared, as_int64(numbers));
}

nb::ndarray<nb::numpy, double> exact_score(handle queries, handle keys, handle low, handle high, int64_t k,
                                           handle key_words, handle words, bool gaussian, float sharpness, float bandwidth, int kernels) {
  ExactArrays arrays(queries, keys, low, high);
  Array<const int32_t, 1> held(key_words, "key_words");
  Array<const int64_t, 1> targets(words, "words");
  require(held.size() == arrays.held.size() && targets.size() == arrays.asked.size(), "words are not one for each key and query");
  require(k > 0, "k is " + std::to_string(k) + "; a search needs at least 1 neighbour");
  Votes votes = votes_of(gaussian, sharpness, bandwidth, kernels);
  auto shares = new_array<double, 2>({arrays.asked.size(), static_cast<size_t>(kernels)});
  nb::gil_scoped_release release;
  arrays.exact().score(static_cast<size_t>(k), votes, held.data(), targets.data(), shares.data());
  return shares;
}

// What neighbours that were found elsewhere vote for; an infinite distance is nobody.
nb::ndarray<nb::numpy, double> count(handle squared, handle words, handle targets, bool gaussian, float sharpness, float bandwidth, int kernels) {
  Array<const float, 2> far(squared, "squared");
  Array<const int64_t, 2> said(words, "words");
  Array<const int64_t, 1> came(targets, "targets");
  size_t n = far.size(), k = far.size(1);
  require(said.size() == n && said.size(1) == k && came.size() == n, "words are not one for each neighbour, or targets for each row");
  Votes votes = votes_of(gaussian, sharpness, bandwidth, kernels);
  auto shares = new_array<double, 2>({n, static_cast<size_t>(kernels)});
  nb::gil_scoped_release release;
  std::vector<uint32_t> bits, places;
  std::vector<int64_t> voted;
  for (size_t t = 0; t < n; ++t) {
    bits.clear(), places.clear(), voted.clear();
    uint32_t last = 0;
    for (size_t i = 0; i < k; ++i) {
      float value = std::max(far.row(t)[i], 0.0f);
      if (!std::isfinite(value)) continue;
      uint32_t here;
      std::memcpy(&here, &value, sizeof here);
      last = std::max(last, here);
      places.push_back(static_cast<uint32_t>(bits.size()) | (said.row(t)[i] == came[t] ? kHit : 0));
      bits.push_back(here), voted.push_back(said.row(t)[i]);
    }
    Ballot ballot{};
    ballot.bits = bits.data(), ballot.positions = places.data(), ballot.count = bits.size();
    ballot.last_bits = last, ballot.last_position = ~kHit;
    ballot.own_words = voted.data(), ballot.target = came[t];
    count_votes(code_kernels(), votes, ballot, shares.data() + t * kernels);
  }
  return shares;
}

nb::ndarray<nb::numpy, double> mixed_weights(handle squared, handle trust, bool gaussian, float sharpness, float bandwidth, int kernels) {
  Array<const float, 2> far(squared, "squared");
  Array<const double, 1> trusted(trust, "trust");
  Votes votes = votes_of(gaussian, sharpness, bandwidth, kernels);
  require(static_cast<int>(trusted.size()) == kernels, "trust is not one number for each kernel");
  auto mixed = new_array<double, 2>({far.size(0), far.size(1)});
  nb::gil_scoped_release release;
  for (size_t t = 0; t < far.size(0); ++t) mix_weights(votes, far.row(t), far.size(1), trusted.data(), mixed.data() + t * far.size(1));
  return mixed;
}

// The word at each position, of which `oldest` is the first that is known; -1 where none is. Words
// lie anywhere, and the loads do not wait for one another here.
nb::object words_at(handle known, handle positions, int64_t oldest) {
  Array<const int32_t, 1> words(known, "known");
  Array<const int64_t, 2> places(positions, "positions");
  size_t n = places.size(0) * places.size(1);
  int64_t end = oldest + static_cast<int64_t>(words.size());
  bool inside = true;
  for (size_t i = 0; i < n; ++i) inside = inside && (places[i] == -1 || (places[i] >= oldest && places[i] < end));
  require(inside, "a position is none of the known words'");
  auto found = new_array<int64_t, 2>({places.size(0), places.size(1)});
  for (size_t i = 0; i < n; ++i) found.data()[i] = places[i] < 0 ? -1 : words[places[i] - oldest];
  return as_int64(found);
}

}  // namespace

void bind_datastore(nb::module_& m) {
  m.def("exact_search", &exact_search, nb::arg("queries"), nb::arg("keys"), nb::arg("low"), nb::arg("high"), nb::arg("k"));
  m.def("exact_score", &exact_score, nb::arg("queries"), nb::arg("keys"), nb::arg("low"), nb::arg("high"), nb::arg("k"),
        nb::arg("key_words"), nb::arg("words"), nb::arg("gaussian"), nb::arg("sharpness"), nb::arg("bandwidth"), nb::arg("kernels"));
  m.def("words_at", &words_at, nb::arg("known"), nb::arg("positions"), nb::arg("oldest"));
  m.def("mixed_weights", &mixed_weights, nb::arg("squared"), nb::arg("trust"), nb::arg("gaussian"), nb::arg("sharpness"),
        nb::arg("bandwidth"), nb::arg("kernels"));
  m.def("count_votes", &count, nb::arg("squared"), nb::arg("words"), nb::arg("targets"), nb::arg("gaussian"),
        nb::arg("sharpness"), nb::arg("bandwidth"), nb::arg("kernels"));
  nb::class_<QuantizedLists>(m, "QuantizedLists", "Codes in inverted lists that are split as they grow.")
      .def(nb::init<handle, handle, handle, int64_t, int64_t, int64_t, int64_t>(), nb::arg("mean"), nb::arg("axes"),
           nb::arg("steps"), nb::arg("split_every"), nb::arg("candidates") = 8, nb::arg("fewest") = 1024, nb::arg("stretches") = 1024)
      .def_prop_ro("entries", [](const QuantizedLists& self) { return self.lists.entries(); })
      .def_prop_ro("count", [](const QuantizedLists& self) { return self.lists.count(); })
      .def_prop_ro("bytes", [](const QuantizedLists& self) { return self.lists.bytes(); })
      .def_prop_ro("room", [](const QuantizedLists& self) { return self.lists.room(); })
      .def("add", &QuantizedLists::add, nb::arg("keys"), nb::arg("words"))
      .def("retag", &QuantizedLists::retag, nb::arg("words"))
      .def("search", &QuantizedLists::search, nb::arg("queries"), nb::arg("k"), nb::arg("own_past") = false)
      .def("score", &QuantizedLists::score, nb::arg("keys"), nb::arg("words"), nb::arg("known_words"), nb::arg("k"),
           nb::arg("gaussian"), nb::arg("sharpness"), nb::arg("bandwidth"), nb::arg("kernels"))
      .def("vote", &QuantizedLists::vote, nb::arg("queries"), nb::arg("words"), nb::arg("known_words"), nb::arg("k"),
           nb::arg("gaussian"), nb::arg("sharpness"), nb::arg("bandwidth"), nb::arg("kernels"))
      .def("state", &QuantizedLists::state)
      .def("load", &QuantizedLists::load, nb::arg("state"))
      .def("since", &QuantizedLists::since, nb::arg("first"))
      .def("grow", &QuantizedLists::grow, nb::arg("codes"), nb::arg("lists"))
      .def("encoded", &QuantizedLists::encoded, nb::arg("keys"));
}

}  // namespace unbounded
