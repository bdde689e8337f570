// Arguments that searching and voting share.
#pragma once

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "arrays.h"
#include "votes.h"

namespace unbounded {

using std::to_string;
using Keys = Arg<"keys", const float, 2>;
using Queries = Arg<"queries", const float, 2>;
using Words = Arg<"words", const int64_t, 1>;

// How neighbours vote: whether gaussian, sharpness, bandwidth, and how many kernels: together, with so
// much trust in each, or each by itself where there is none.
using Voting = std::tuple<bool, float, float, int, Arg<"trust", const double, 1>>;

inline Votes votes_of(const Voting& voting) {
  const auto& [gaussian, sharpness, bandwidth, kernels, trust] = voting;
  require(kernels > 0 && kernels <= 8 && sharpness > 0 && bandwidth >= 0, "no such kernel of votes");
  require(trust.size() == 0 || trust.size() == size_t(kernels), "trust is not one number for each kernel");
  return {gaussian, sharpness, bandwidth, kernels, trust.size() ? trust.data() : nullptr};
}

inline void require_k(int64_t k) { require(k > 0, "k is " + to_string(k) + "; a search needs at least 1 neighbour"); }

}  // namespace unbounded
