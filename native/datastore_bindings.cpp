// Lists of codes for Python.
#include "search.h"
#include "voting_arguments.h"

namespace unbounded {
namespace {

void require_as_many(size_t words, size_t entries, const char* of) {
  require(words == entries, to_string(words) + " words for " + to_string(entries) + of);
}

// Rows of `width` out of one vector.
template <class T>
Numpy<T> rows_of(const std::vector<T>& values, size_t width) {
  auto array = new_array<T>({values.size() / width, width});
  std::copy(values.begin(), values.end(), array.data());
  return array;
}

// Lists, and a log of the codes that came since a delta was last asked for, once one was.
class QuantizedLists {
 public:
  QuantizedLists(const QuantizedLists&) = delete;
  QuantizedLists(const Arg<"mean", const float, 1>& mean, const Arg<"axes", const float, 2>& axes,
                 const Arg<"steps", const float, 1>& steps, int64_t split_every, int64_t candidates, int64_t fewest,
                 int64_t stretches)
      : lists(quantizer(mean, axes, steps), {split_every, candidates, fewest, stretches}) {
    require(std::min({split_every, candidates, fewest, stretches}) > 0,
            "split_every, candidates, fewest and stretches must be at least 1");
  }

  static Quantizer quantizer(const Array<const float, 1>& mean, const Array<const float, 2>& axes,
                             const Array<const float, 1>& steps) {
    require(mean.size() > 0 && axes.size(0) == mean.size() && axes.size(1) == kAxes && steps.size() == kAxes,
            "axes are not a row of 120 for each of the mean's dimensions, with 120 steps");
    return Quantizer(mean.data(), axes.data(), steps.data(), mean.size());
  }

  size_t width() const { return lists.quantizer().width(); }

  void require_keys(const Array<const float, 2>& keys) const {
    require(keys.size(1) == width(), "keys are " + to_string(keys.size(1)) + " wide, these lists hold keys " +
                                         to_string(width()) + " wide");
    // What is not finite stays so when it is multiplied by nothing and added up.
    float sum = 0;
    for (size_t i = 0; i < keys.size(0) * keys.size(1); ++i) sum += 0.0f * keys[i];
    require(sum == 0, "keys are not all finite");
  }

  void append(Coded& coded, const std::vector<int32_t>& to, const int64_t* words) {
    lists.append(coded.codes.data(), to.data(), words, to.size());
    if (following) {
      came_codes.insert(came_codes.end(), coded.codes.begin(), coded.codes.end());
      came_lists.insert(came_lists.end(), to.begin(), to.end());
    }
  }

  void add(const Keys& keys, const Words& words) {
    require_keys(keys);
    require_as_many(words.size(), keys.size(), " keys");
    nb::gil_scoped_release release;
    for (size_t start = 0; start < keys.size();) {
      size_t n = std::min<size_t>(keys.size() - start, lists.room());
      Coded coded = encode(lists.quantizer(), keys.row(start), n);
      append(coded, lists.assign(coded), words.data() + start);
      start += n;
    }
  }

  // Neighbours of each row; with `own_past` as if each had been added after it was searched for.
  nb::tuple search(const Queries& queries, int64_t k, bool own_past) {
    require_keys(queries);
    require_k(k);
    const size_t n = queries.size();
    k = std::min(k, lists.entries() + (own_past && n ? int64_t(n) - 1 : 0));
    auto squared = new_array<float>({n, size_t(k)});
    auto positions = new_array<int64_t>({n, size_t(k)});
    if (n) {
      nb::gil_scoped_release release;
      Coded coded = encode(lists.quantizer(), queries.data(), n);
      Search found(lists, coded, k, own_past, nullptr);
      if (k) found.neighbours(squared.data(), positions.data());
    }
    return nb::make_tuple(squared, positions);
  }

  // Neighbours of each row in no order: distances and entries.
  nb::tuple unordered(const Queries& queries, int64_t k) {
    require_keys(queries);
    require_k(k);
    const size_t n = queries.size(), most = size_t(std::min(k, lists.entries()));
    auto squared = new_array<float>({n, most});
    auto entries = new_array<uint32_t>({n, most});
    if (n && most) {
      nb::gil_scoped_release release;
      Coded coded = encode(lists.quantizer(), queries.data(), n);
      Search(lists, coded, int64_t(most), false, nullptr).unordered(squared.data(), entries.data());
    }
    return nb::make_tuple(squared, entries);
  }

  // Each kernel's probability of each word just before it came; then add the keys. Where it is not to
  // `learn`, queries do not see each other, and nothing changes.
  Numpy<double> score(const Keys& keys, const Words& words, const Arg<"known_words", const int32_t, 1>& known,
                      int64_t k, const Voting& voting, bool learn) {
    const Votes votes = votes_of(voting);
    const auto n = int64_t(keys.size());
    require_keys(keys);
    require_k(k);
    require_as_many(words.size(), keys.size(), " keys");
    require_as_many(known.size(), size_t(lists.entries()), " entries");
    require(!learn || n <= lists.room(), "the block is longer than there is room for");
    auto shares = new_array<double>({keys.size(), votes.columns()});
    if (n) {
      nb::gil_scoped_release release;
      Coded coded = encode(lists.quantizer(), keys.data(), keys.size());
      Search found(lists, coded, std::min(k, lists.entries() + (learn ? n - 1 : 0)), learn, words.data());
      found.score(votes, known.data(), shares.data());
      if (learn) append(coded, found.nearest_lists(), words.data());
    }
    return shares;
  }

  // The state, as it lies on disk.
  nb::dict state() const {
    const Quantizer& quantizer = lists.quantizer();
    const size_t taken = lists.next.size();
    auto codes = new_array<uint32_t>({taken, kChunkWords});
    for (size_t chunk = 0; chunk < taken; ++chunk)
      std::copy_n(lists.chunks[chunk], kChunkWords, codes.data() + chunk * kChunkWords);
    auto axes = new_array<float>({width(), kAxes});
    for (size_t i = 0; i < width(); ++i) std::copy_n(quantizer.axes() + i * kPadded, kAxes, axes.data() + i * kAxes);
    nb::dict found;
    found["codes"] = codes, found["axes"] = axes;
    found["centroids"] = rows_of(lists.centroids, kCentroidChunkWords);
    found["next"] = copied(lists.next);
    found["heads"] = copied(lists.heads), found["tails"] = copied(lists.tails);
    found["lengths"] = copied(lists.lengths), found["settled"] = copied(lists.settled);
    found["counts"] = copied(std::vector<int64_t>{lists.count(), int64_t(taken), lists.free});
    found["mean"] = copied(std::vector<float>(quantizer.mean(), quantizer.mean() + width()));
    found["steps"] = copied(std::vector<float>(quantizer.steps(), quantizer.steps() + kAxes));
    return found;
  }

  // Become what wrote the state. The codes may be kept where they are, and changed.
  void load(const nb::dict& state) {
    const Array<uint32_t, 2> codes(state["codes"], "codes");
    const Array<const uint32_t, 2> centroids(state["centroids"], "centroids");
    const Array<const int32_t, 1> next(state["next"], "next"), heads(state["heads"], "heads"),
        tails(state["tails"], "tails");
    const Array<const int64_t, 1> lengths(state["lengths"], "lengths"), settled(state["settled"], "settled"),
        counts(state["counts"], "counts");
    require(counts.size() == 3, "counts are not three numbers");
    const auto count = size_t(counts[0]), taken = size_t(counts[1]), some = (count + kChunk - 1) / kChunk;
    bool fits = count > 0 && taken <= codes.size(0) && codes.size(1) == kChunkWords && taken <= next.size() &&
                counts[2] < int64_t(taken) && centroids.size(1) == kCentroidChunkWords && centroids.size(0) >= some;
    for (size_t size : {heads.size(), tails.size(), lengths.size(), settled.size()}) fits = fits && size >= count;
    require(fits, "the arrays of the lists do not fit together");
    // Every chunk is in one chain at most, and each chain is as long as its list: no damage may lead
    // a search outside of its memory.
    std::vector<bool> seen(taken, false);
    const auto follow = [&](int64_t chunk, int64_t chunks) {
      for (int64_t i = 0; chunks < 0 ? chunk >= 0 : i < chunks; ++i) {
        require(chunk >= 0 && chunk < int64_t(taken) && !seen[chunk], "the chains of the lists are damaged");
        seen[chunk] = true;
        chunk = next[chunk];
      }
    };
    for (size_t list = 0; list < count; ++list) {
      require(lengths[list] >= 0 && lengths[list] <= int64_t(taken) * kChunk, "the lengths of the lists are damaged");
      follow(heads[list], (lengths[list] + kChunk - 1) / kChunk);
    }
    follow(counts[2], -1);
    lists.next.assign(next.data(), next.data() + taken);
    lists.heads.assign(heads.data(), heads.data() + count);
    lists.tails.assign(tails.data(), tails.data() + count);
    lists.lengths.assign(lengths.data(), lengths.data() + count);
    lists.settled.assign(settled.data(), settled.data() + count);
    lists.centroids.assign(centroids.data(), centroids.data() + some * kCentroidChunkWords);
    lists.free = counts[2];
    lists.chunks.adopt(codes.data(), taken);
    lists.tags.reserve(taken);
    lists.restore();
    adopted = state["codes"];
    following = false;
    came_codes.clear(), came_lists.clear();
  }

  // Codes and lists of the entries from number `first` on; None if the log does not reach back to it.
  // It is kept from there on, or from now on, so that who never asks pays nothing.
  nb::object since(int64_t first) {
    const int64_t logged = following ? static_cast<int64_t>(came_lists.size()) : 0, before = lists.entries() - logged;
    require(first >= 0 && first <= lists.entries(), "there are " + to_string(lists.entries()) + " entries, and none since " + to_string(first));
    nb::object found = nb::none();
    const int64_t dropped = first < before ? logged : first - before;
    came_codes.erase(came_codes.begin(), came_codes.begin() + dropped * kWords);
    came_lists.erase(came_lists.begin(), came_lists.begin() + dropped);
    if (first >= before) {
      nb::dict arrays;
      arrays["codes"] = rows_of(came_codes, kWords), arrays["lists"] = copied(came_lists);
      found = arrays;
    }
    following = true;
    return found;
  }

  // Append codes to their lists, which are split where they were split before.
  void grow(const Arg<"codes", const uint32_t, 2>& codes, const Arg<"lists", const int32_t, 1>& to) {
    require(codes.size(1) == kWords && codes.size(0) == to.size(), "codes are not a row of 17 for each list");
    for (size_t start = 0; start < to.size();) {
      size_t n = std::min<size_t>(to.size() - start, lists.room());
      auto worst = std::minmax_element(to.data() + start, to.data() + start + n);
      require(*worst.first >= 0 && *worst.second < lists.count(),
              "a list beyond the " + to_string(lists.count()) + " that there are; the state is damaged");
      std::vector<uint32_t> some(codes.row(start), codes.row(start + n));
      lists.append(some.data(), to.data() + start, nullptr, n);
      start += n;
    }
    came_codes.clear(), came_lists.clear();
  }

  // Tell what word came at each entry, once arrays were loaded or codes were grown.
  void retag(const Arg<"words", const int32_t, 1>& words) {
    require_as_many(words.size(), size_t(lists.entries()), " entries");
    lists.retag(words.data());
  }

  nb::tuple encoded(const Keys& keys) const {
    require_keys(keys);
    Coded coded = encode(lists.quantizer(), keys.data(), keys.size());
    return nb::make_tuple(rows_of(coded.codes, kWords), rows_of(coded.queries, kAxes), copied(coded.offsets),
                          copied(coded.scales), copied(coded.totals));
  }

  Lists lists;
  bool following = false;
  std::vector<uint32_t> came_codes;
  std::vector<int32_t> came_lists;
  nb::object adopted;  // kept alive: the first chunks may lie in it
};

}  // namespace

void bind_datastore(nb::module_& m) {
  using nb::arg;
  nb::class_<QuantizedLists>(m, "QuantizedLists", "Codes in inverted lists that are split as they grow.")
      .def(nb::init<const Arg<"mean", const float, 1>&, const Arg<"axes", const float, 2>&,
                    const Arg<"steps", const float, 1>&, int64_t, int64_t, int64_t, int64_t>())
      .def_prop_ro("entries", [](const QuantizedLists& self) { return self.lists.entries(); })
      .def_prop_ro("count", [](const QuantizedLists& self) { return self.lists.count(); })
      .def_prop_ro("bytes", [](const QuantizedLists& self) { return self.lists.bytes(); })
      .def_prop_ro("room", [](const QuantizedLists& self) { return self.lists.room(); })
      .def("add", &QuantizedLists::add)
      .def("retag", &QuantizedLists::retag)
      .def("search", &QuantizedLists::search, arg("queries"), arg("k"), arg("own_past") = false)
      .def("unordered", &QuantizedLists::unordered)
      .def("score", &QuantizedLists::score, arg("keys"), arg("words"), arg("known_words"), arg("k"), arg("votes"),
           arg("learn") = true)
      .def("state", &QuantizedLists::state)
      .def("load", &QuantizedLists::load)
      .def("since", &QuantizedLists::since)
      .def("grow", &QuantizedLists::grow)
      .def("encoded", &QuantizedLists::encoded);
}

}  // namespace unbounded
