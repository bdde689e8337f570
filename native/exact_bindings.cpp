// Exact search and votes for Python.
#include <algorithm>
#include <cmath>
#include <vector>

#include "exact.h"
#include "voting_arguments.h"

namespace unbounded {
namespace {

using Bounds = Arg<"low and high", const int64_t, 1>;
using Squared = Arg<"squared", const float, 2>;

Exact exact_of(const Queries& queries, const Keys& keys, const Bounds& low, const Bounds& high) {
  require(queries.size(1) == keys.size(1),
          "queries are " + to_string(queries.size(1)) + " wide, keys " + to_string(keys.size(1)));
  require(low.size() == queries.size() && high.size() == queries.size(),
          "low and high are not one number for each query");
  for (size_t t = 0; t < queries.size(); ++t)
    require(low[t] >= 0 && low[t] <= high[t] && high[t] <= int64_t(keys.size()), "a query sees keys that there are not");
  return {queries.data(), queries.size(), keys.data(), queries.size(1), low.data(), high.data()};
}

nb::tuple exact_search(const Queries& queries, const Keys& keys, const Bounds& low, const Bounds& high, int64_t k) {
  const Exact exact = exact_of(queries, keys, low, high);
  require(k >= 0, "k is negative");
  auto squared = new_array<float>({queries.size(), size_t(k)});
  auto numbers = new_array<int64_t>({queries.size(), size_t(k)});
  if (k) {
    nb::gil_scoped_release release;
    exact.neighbours(size_t(k), squared.data(), numbers.data());
  }
  return nb::make_tuple(squared, numbers);
}

Numpy<double> exact_score(const Queries& queries, const Keys& keys, const Bounds& low, const Bounds& high, int64_t k,
                          const Arg<"key_words", const int32_t, 1>& said, const Words& words,
                          const Voting& voting) {
  const Exact exact = exact_of(queries, keys, low, high);
  require(said.size() == keys.size() && words.size() == queries.size(), "words are not one for each key and query");
  require_k(k);
  const Votes votes = votes_of(voting);
  auto shares = new_array<double>({queries.size(), votes.columns()});
  nb::gil_scoped_release release;
  exact.score(size_t(k), votes, said.data(), words.data(), shares.data());
  return shares;
}

// The same with what was found of earlier keys elsewhere, by the number of its part; and how far the
// last is that votes.
nb::tuple merged_score(const Queries& queries, const Keys& keys, const Bounds& low, const Bounds& high, int64_t k,
                       const nb::dict& found, int64_t parts, int64_t entries,
                       const Arg<"known_words", const int32_t, 1>& known, const Words& words,
                       const Voting& voting) {
  const Exact exact = exact_of(queries, keys, low, high);
  require(entries >= 0 && known.size() == size_t(entries) + keys.size() && words.size() == queries.size(),
          "words are not one for each entry, key and query");
  require_k(k);
  const Votes votes = votes_of(voting);
  Elsewhere elsewhere{{}, parts, entries};
  for (const auto& [number, arrays] : found) {
    const auto which = nb::cast<int64_t>(number);
    const Array<const float, 2> squared(arrays[0], "squared");
    const Array<const uint32_t, 2> places(arrays[1], "entries");
    require(which >= 0 && which < parts && squared.shape() == places.shape() && squared.size() == queries.size(),
            "neighbours elsewhere are not one row for each query");
    int64_t most = -1;
    for (size_t i = 0; i < squared.size(0) * squared.size(1); ++i) {
      most = std::max<int64_t>(most, places[i]);
      require(squared[i] >= 0, "a distance elsewhere is none");
    }
    require(most * parts + which < entries, "an entry elsewhere is none of those that there are");
    elsewhere.found.push_back({squared.data(), places.data(), squared.size(1), size_t(which)});
  }
  auto shares = new_array<double>({queries.size(), votes.columns()});
  auto furthest = new_array<float>({queries.size()});
  {
    nb::gil_scoped_release release;
    exact.score(size_t(k), votes, known.data(), words.data(), elsewhere, shares.data(), furthest.data());
  }
  return nb::make_tuple(shares, furthest);
}

// What neighbours that were found elsewhere vote for; an infinite distance is nobody.
Numpy<double> votes_for(const Squared& squared, const Arg<"words", const int64_t, 2>& words,
                        const Arg<"targets", const int64_t, 1>& targets, const Voting& voting) {
  const size_t n = squared.size(), k = squared.size(1);
  require(words.shape() == squared.shape() && targets.size() == n,
          "words are not one for each neighbour, or targets for each row");
  const Votes votes = votes_of(voting);
  auto shares = new_array<double>({n, votes.columns()});
  nb::gil_scoped_release release;
  std::vector<uint32_t> bits, places;
  std::vector<int64_t> voted;
  for (size_t t = 0; t < n; ++t) {
    bits.clear(), places.clear(), voted.clear();
    uint32_t last = 0;
    for (size_t i = 0; i < k; ++i) {
      const float far = std::max(squared.row(t)[i], 0.0f);
      if (!std::isfinite(far)) continue;
      last = std::max(last, as_bits(far));
      places.push_back(uint32_t(bits.size()) | (words.row(t)[i] == targets[t] ? kHit : 0));
      bits.push_back(as_bits(far)), voted.push_back(words.row(t)[i]);
    }
    Ballot ballot{};
    ballot.bits = bits.data(), ballot.positions = places.data(), ballot.count = bits.size();
    ballot.last_bits = last, ballot.last_position = ~kHit;
    ballot.own_words = voted.data(), ballot.target = targets[t];
    count_votes(code_kernels(), votes, ballot, shares.data() + t * votes.columns());
  }
  return shares;
}

Numpy<double> mixed_weights(const Squared& squared, const Voting& voting) {
  const Votes votes = votes_of(voting);
  require(votes.trust, "trust is needed, one number for each kernel");
  const size_t k = squared.size(1);
  auto mixed = new_array<double>({squared.size(), k});
  nb::gil_scoped_release release;
  for (size_t t = 0; t < squared.size(); ++t)
    code_kernels().mix(votes, squared.row(t), k, mixed.data() + t * k);
  return mixed;
}

// The word at each position; -1 where none is. Words lie anywhere, and the loads do not wait for one
// another here.
Numpy<int64_t> words_at(const Arg<"known", const int32_t, 1>& known, const Arg<"positions", const int64_t, 2>& positions) {
  auto found = new_array<int64_t>({positions.size(0), positions.size(1)});
  bool inside = true;
  for (size_t i = 0; i < positions.size(0) * positions.size(1); ++i) {
    const bool there = size_t(positions[i]) < known.size();
    inside &= there || positions[i] == -1;
    found.data()[i] = there ? known[positions[i]] : -1;
  }
  require(inside, "a position is none of the known words'");
  return found;
}

}  // namespace

void bind_exact(nb::module_& m) {
  m.def("exact_search", &exact_search);
  m.def("exact_score", &exact_score);
  m.def("merged_score", &merged_score);
  m.def("words_at", &words_at);
  m.def("mixed_weights", &mixed_weights);
  m.def("count_votes", &votes_for);
}

}  // namespace unbounded
