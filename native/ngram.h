// N-grams as a tree in arrays: a node is a context and a word after it.
//
// A node's key is exact (its parent's number and its word), so nothing collides. There are as many
// chains as nodes: each node that comes brings one, which takes its share of an older chain's nodes
// (linear hashing; Litwin, 1980), so that the table grows with its nodes and never pauses.
// Only n-grams that came again, or as contexts have two followers, have a row of counts.
#pragma once

#include <cstdint>

namespace unbounded {

constexpr int kOrders = 5, kTotals = 25, kRepeats = 6;
constexpr int64_t kNowhere = -1;
constexpr int32_t kNone = -1;

// The n-gram `word` after `parent`, the next node in its chain (0: none), and what followed it last:
// a word, kNone, or below that the number of its row of counts.
struct Node {
  int32_t parent, word, next, last;
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

struct Tree {
  int32_t* heads;
  Node* nodes;
  Counts* counts;
  int64_t used, rows;         // of nodes (and chains), and of counts
  double (*learned)[3];       // for each kind of context
  int64_t* contexts;          // the nodes of the last 0, 1, … words, or kNowhere

  // The head of each chain, for nodes that are in none.
  void chain_all();

  // What each context that was met before says of any word; how many contexts those are.
  int weigh(Said* said) const;

  // The probability of each word after these contexts, as `weigh` found them; without any count a
  // word has 1 / size, and one beyond `size` nothing.
  void ask(const int64_t* words, int64_t n, int64_t size, const Said* said, double* probs) const;

  // Ask for each word and go on to the contexts behind it; nothing is counted.
  void walk(const int64_t* words, int64_t n, int64_t size, double* probs);

  // Ask, look, learn for each word. There must be room for kOrders more nodes a word.
  void read(const int64_t* words, int64_t n, int64_t size, double* probs);
};

}  // namespace unbounded
