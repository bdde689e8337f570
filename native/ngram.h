// N-grams as a tree in arrays: a node is a context and a word after it.
//
// A node's key is exact (its parent's number and its word), so nothing collides. There are as many
// chains as nodes: each node that comes brings one, which takes its share of an older chain's nodes
// (linear hashing; Litwin, 1980), so that the table grows with its nodes and never pauses.
// Only n-grams that came again, or as contexts have two followers, have a row of counts. The longest
// are no contexts: while one of them is all that followed its context, and once, that has it as its last
// follower and it has no node.
//
// One tree may have two views: what is read alone, and after a text that was read before. All nodes
// are in the last view, and most in both, so that what both count is looked for once. How far the
// last is trusted is learned apart for contexts that the first has met too.
#pragma once

#include <cstdint>

namespace unbounded {

constexpr int kOrders = 5, kTotals = 25, kRepeats = 6, kKinds = kOrders * kTotals * kRepeats;
constexpr int64_t kNowhere = -1;
constexpr int32_t kNone = -1, kAbsent = INT32_MIN;

// The n-gram `word` after `parent`, the next node in its chain (0: none), and what followed it last
// in each view: a word, kNone, below that the number of its row of counts, or kAbsent, not met there.
template <int V>
struct Node {
  int32_t parent, word, next, last[V];
};

// How often an n-gram came, the sum and number of its followers' counts, its last follower.
struct Counts {
  int32_t count, total, distinct, follower;
};

// What one context says: weights of its counts, of its last follower and of backing off, what
// divides a count, the kind of context that learns these weights, and the last follower.
struct Said {
  double counted, last, shorter, divisor, kind, follower;
};

template <int V>
struct Tree {
  static constexpr int64_t kAllKinds = (2 * V - 1) * kKinds;

  int32_t* heads;
  Node<V>* nodes;
  Counts* counts;
  int64_t used, rows;            // of nodes (and chains), and of counts
  double (*learned)[3];          // for each kind of context: in the first view, the last, both
  int64_t (*contexts)[kOrders];  // in each view the nodes of the last 0, 1, … words, or kNowhere

  // The head of each chain, for nodes that are in none.
  void chain_all();

  // What each context says of any word, shorter ones first, and of each the first view; the divisor
  // of those that were not met before is zero.
  void weigh(Said (*said)[V]) const;

  // The probability of each word after these contexts, as `weigh` found them; without any count a
  // word has 1 / size, and one beyond `size` nothing.
  void ask(const int64_t* words, int64_t n, int64_t size, const Said (*said)[V], double* probs) const;

  // Ask for each word and go on to the contexts behind it; nothing is counted.
  void walk(const int64_t* words, int64_t n, int64_t size, double* probs);

  // Ask, look, learn for each word. There must be room for kOrders + 1 more nodes a word.
  void read(const int64_t* words, int64_t n, int64_t size, double* probs);
};

}  // namespace unbounded
