// Searching lists of codes: which lists, which of their entries, and what these vote for.
//
// A block of queries is searched list by list, not query by query: each list is taken from memory
// once for all queries that look into it, and unpacked once for every four of them.
#pragma once

#include <cstdint>
#include <vector>

#include "lists.h"
#include "votes.h"

namespace unbounded {

// A block of queries on its way through the lists.
class Search {
 public:
  // With `own_past` a query also sees the queries before it, as if they had been appended.
  // `words` are those of the queries, if somebody votes for them, or null.
  Search(const Lists& lists, Coded& coded, int64_t k, bool own_past, const int64_t* words);

  // The list of each query.
  std::vector<int32_t> nearest_lists() const;

  // The k nearest of each query, nearest first and of two as near the older: squared distances
  // and positions, infinity and -1 where there are fewer.
  void neighbours(float* squared, int64_t* positions) const;

  // The same in no order, which is faster.
  void unordered(float* squared, uint32_t* positions) const;

  // Each kernel's probability of each query's word; nothing where nobody votes. `known` are the
  // words of the entries by position.
  void score(const Votes& votes, const int32_t* known, double* shares) const;

 private:
  struct Visits;
  struct Part;
  void choose(int64_t wanted);
  void sort_own();
  Visits visits_of(size_t start, size_t stop) const;
  int64_t earlier(int64_t list, size_t query) const;
  void guess(const Visits& visits, size_t start, Part& part) const;
  void look(const Visits& visits, size_t start, Part& part) const;
  template <class Found>
  void each(Found found) const;

  const Lists& lists_;
  Coded& coded_;
  size_t k_;
  bool own_past_;
  const int64_t* words_;
  std::vector<std::vector<int32_t>> chosen_;  // the lists that each query looks into, the nearest first
  // The block's entries by the lists they will go to, in the order of the block.
  std::vector<uint32_t> own_codes_;
  std::vector<uint16_t> own_tags_;
  std::vector<int64_t> own_heads_, own_starts_;
  std::vector<int64_t> own_order_;
};

}  // namespace unbounded
