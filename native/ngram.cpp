#include "ngram.h"

#include <algorithm>
#include <bit>

namespace unbounded {
namespace {

// Taken from every count, so that what was seen once or twice is trusted less (Kneser-Ney).
constexpr double kDiscount = 0.7;

int32_t row(int32_t last) { return kNone - 1 - last; }

int64_t mask_for(int64_t chains) { return chains < 2 ? 0 : int64_t(std::bit_ceil(uint64_t(chains))) - 1; }

// The chain that a node is in.
int64_t chain(int64_t parent, int64_t word, int64_t chains, int64_t mask) {
  uint64_t key = uint64_t(parent) << 32 | uint64_t(word);
  key = (key ^ key >> 30) * 0xBF58476D1CE4E5B9;
  key = (key ^ key >> 27) * 0x94D049BB133111EB;
  const int64_t at = int64_t(key ^ key >> 31) & mask;
  // A chain that has not come yet is still part of an older one.
  return at < chains ? at : at & mask >> 1;
}

bool is(const Node& node, int64_t parent, int64_t word) {
  return node.parent == parent && node.word == word;
}

// The node, or 0 if there is none.
int64_t find(const Tree& tree, int64_t mask, int64_t parent, int64_t word) {
  int64_t node = tree.heads[chain(parent, word, tree.used, mask)];
  while (node && !is(tree.nodes[node], parent, word)) node = tree.nodes[node].next;
  return node;
}

// Whether a word may have followed: a context without counts had one follower, or none.
bool may_follow(const Node& context, int64_t word) {
  return context.last < kNone || (context.last != kNone && context.last == word);
}

// Chain a new node, for which there is one chain more.
void add(Tree& tree, int64_t& mask) {
  const int64_t fresh = tree.used++;
  if (fresh > mask) mask = 2 * mask + 1;
  const int64_t half = mask >> 1, older = fresh & half;
  // Chains are shared out one after another: ask for those that will be soon.
  const auto first = [&](int64_t ahead) { return tree.heads[(older + ahead) & half]; };
  __builtin_prefetch(&tree.nodes[first(24)]);
  __builtin_prefetch(&tree.nodes[tree.nodes[first(16)].next]);
  __builtin_prefetch(&tree.nodes[tree.nodes[tree.nodes[first(8)].next].next]);
  int64_t node = tree.heads[older];
  tree.heads[older] = tree.heads[fresh] = 0;
  const auto push = [&](int64_t each) {
    Node& pushed = tree.nodes[each];
    int32_t& head = tree.heads[chain(pushed.parent, pushed.word, tree.used, mask)];
    pushed.next = head;
    head = int32_t(each);
  };
  while (node) {
    const int64_t following = tree.nodes[node].next;
    push(node);
    node = following;
  }
  push(fresh);
}

// The node's row of counts, which it gets if it had none.
Counts& counted(Tree& tree, Node& node) {
  if (node.last >= kNone) {
    const int32_t followers = node.last != kNone;
    tree.counts[tree.rows] = {1, followers, followers, node.last};
    node.last = row(int32_t(tree.rows++));
  }
  return tree.counts[row(node.last)];
}

// ⌊2 log2 total⌋, at most kTotals - 1: contexts are told apart by how often they were met.
int met(int32_t total) {
  if (total >= 4096) return kTotals - 1;
  const int power = std::bit_width(uint32_t(total)) - 1;
  return 2 * power + (total * total >= 2 << 2 * power);
}

// What a context of that order says; false if nothing ever followed it.
bool weigh_one(const Tree& tree, int order, Said& said) {
  said.divisor = 0.0;
  if (tree.contexts[order] == kNowhere) return false;
  int32_t total = 1, distinct = 1, last = tree.nodes[tree.contexts[order]].last;
  if (last == kNone) return false;
  if (last < kNone) {
    const Counts& counts = tree.counts[row(last)];
    total = counts.total, distinct = counts.distinct, last = counts.follower;
    if (total == 0) return false;
  }
  // And by how often their next word was a repeat.
  const int repeats = int(int64_t(total - distinct) * kRepeats / total);
  const int kind = (order * kTotals + met(total)) * kRepeats + repeats;
  const double* learned = tree.learned[kind];
  const double mass = learned[0] + learned[1] + learned[2];
  said = {learned[0] / mass,           learned[1] / mass, learned[2] / mass,
          total - kDiscount * distinct, double(kind),      double(last)};
  return true;
}

// What a context's counts, and its last follower, give to a word that has a node.
void shares(const Tree& tree, const Node& node, const Said& said, double& by_count, double& by_last) {
  const int32_t count = node.last >= kNone ? 1 : tree.counts[row(node.last)].count;
  by_count = (count - kDiscount) / said.divisor * said.counted;
  by_last = said.follower == node.word ? said.last : 0.0;
}

// What the next words will look at, asked for while earlier ones are read.
//
// A node is looked for in four steps, a word apart: its chain's head, its first node, its second
// node, the rest. A context's node is the parent of the next word's: so each order runs two words
// behind the shorter one. What is found is only a hint: a node that was there stays, and one that
// was not is looked for again.
class Lookahead {
 public:
  Lookahead(const Tree& tree, const int64_t* words, int64_t n) : tree_(tree), words_(words), n_(n) {
    for (int64_t t = -2 * kOrders - 2; t < 0; ++t) step(t, mask_for(tree.used));
  }

  // Call once for each word t, before it is read.
  void step(int64_t t, int64_t mask) {
    for (int order = 0; order < kOrders; ++order) {
      const int64_t first = t + 2 * (kOrders - order) + 2;
      if (inside(first)) begin(first, order, mask);
      if (inside(first - 1)) {
        Place& place = at(first - 1, order);
        if (place.parent >= 0) __builtin_prefetch(&tree_.nodes[place.node = tree_.heads[place.node]]);
      }
      if (inside(first - 2)) {
        Place& place = at(first - 2, order);
        if (place.node && !is(tree_.nodes[place.node], place.parent, words_[first - 2]))
          __builtin_prefetch(&tree_.nodes[place.node = tree_.nodes[place.node].next]);
      }
      if (inside(first - 3)) {
        Place& place = at(first - 3, order);
        while (place.node && !is(tree_.nodes[place.node], place.parent, words_[first - 3]))
          place.node = tree_.nodes[place.node].next;
        const Node& node = tree_.nodes[place.node];
        if (node.last < kNone) __builtin_prefetch(&tree_.counts[row(node.last)]);
      }
    }
  }

  // The node of word t after a context, if it was there when it was looked for; or 0.
  int64_t found(int64_t t, int order, int64_t context) const {
    const Place& place = places_[t & 15][order];
    return place.parent == context ? place.node : 0;
  }

 private:
  struct Place {
    int64_t parent = kNowhere;
    int64_t node = 0;  // first the chain, then a node in it
  };

  bool inside(int64_t t) const { return t >= 0 && t < n_; }
  Place& at(int64_t t, int order) { return places_[t & 15][order]; }

  void begin(int64_t t, int order, int64_t mask) {
    Place& place = at(t, order) = {};
    int64_t parent = 0;
    if (order) parent = t ? at(t - 1, order - 1).node : tree_.contexts[order];
    // Longer contexts that are not known have no node.
    if (order && parent <= 0) return;
    const int64_t at = chain(parent, words_[t], tree_.used, mask);
    __builtin_prefetch(&tree_.heads[at]);
    if (may_follow(tree_.nodes[parent], words_[t])) place = {parent, at};
  }

  const Tree& tree_;
  const int64_t* words_;
  int64_t n_;
  Place places_[16][kOrders];
};

// The probability of word t, and its nodes after each context that has one; the weights may learn.
template <bool kLearn>
double look(const Tree& tree, int64_t word, int64_t size, int64_t mask, const Lookahead& ahead,
            int64_t t, int64_t* found) {
  double prob = word < size ? 1.0 / size : 0.0;
  Said said;
  bool known = true;
  for (int order = 0; order < kOrders && weigh_one(tree, order, said); ++order) {
    const int64_t context = tree.contexts[order];
    double by_count = 0.0, by_last = 0.0;
    // What a context never saw, no longer one saw.
    if (known && (known = may_follow(tree.nodes[context], word))) {
      int64_t node = ahead.found(t, order, context);
      if (!node) node = find(tree, mask, context, word);
      if ((known = node)) shares(tree, tree.nodes[node], said, by_count, by_last);
      found[order] = node;
    }
    const double shorter = said.shorter * prob;
    prob = by_count + by_last + shorter;
    // Each context learns as if no longer one were there. EM over the whole chain is 1 % better
    // alone, but 0.3 % worse in a mixture, which wants the sharper opinion.
    // A word that no context can foresee says nothing about them.
    if (kLearn && prob > 0.0) {
      double* kind = tree.learned[int(said.kind)];
      kind[0] += by_count / prob;
      kind[1] += by_last / prob;
      kind[2] += shorter / prob;
    }
  }
  return prob;
}

}  // namespace

void Tree::chain_all() {
  const int64_t all = used;
  int64_t mask = 0;
  heads[0] = 0;
  for (used = 1; used < all;) add(*this, mask);
}

int Tree::weigh(Said* said) const {
  int order = 0;
  while (order < kOrders && weigh_one(*this, order, said[order])) ++order;
  return order;
}

void Tree::ask(const int64_t* words, int64_t n, int64_t size, const Said* said, double* probs) const {
  const int64_t mask = mask_for(used);
  const auto head = [&](int order, int64_t t) {
    return &heads[chain(contexts[order], words[t < n ? t : n - 1], used, mask)];
  };
  for (int64_t t = 0; t < n; ++t) {
    for (int order = 0; order < 2 && said[order].divisor != 0.0; ++order) {
      __builtin_prefetch(head(order, t + 16));
      __builtin_prefetch(&nodes[*head(order, t + 8)]);
    }
    double prob = words[t] < size ? 1.0 / size : 0.0;
    bool known = true;
    for (int order = 0; order < kOrders && said[order].divisor != 0.0; ++order) {
      double by_count = 0.0, by_last = 0.0;
      if (known && (known = may_follow(nodes[contexts[order]], words[t]))) {
        const int64_t node = find(*this, mask, contexts[order], words[t]);
        if ((known = node)) shares(*this, nodes[node], said[order], by_count, by_last);
      }
      prob = by_count + by_last + said[order].shorter * prob;
    }
    probs[t] = prob;
  }
}

void Tree::walk(const int64_t* words, int64_t n, int64_t size, double* probs) {
  const int64_t mask = mask_for(used);
  Lookahead ahead(*this, words, n);
  for (int64_t t = 0; t < n; ++t) {
    ahead.step(t, mask);
    int64_t found[kOrders] = {};
    probs[t] = look<false>(*this, words[t], size, mask, ahead, t, found);
    for (int order = 1; order < kOrders; ++order)
      contexts[order] = found[order - 1] ? found[order - 1] : kNowhere;
  }
}

void Tree::read(const int64_t* words, int64_t n, int64_t size, double* probs) {
  int64_t mask = mask_for(used);
  Lookahead ahead(*this, words, n);
  for (int64_t t = 0; t < n; ++t) {
    ahead.step(t, mask);
    const int64_t word = words[t];
    int64_t found[kOrders] = {};
    probs[t] = look<true>(*this, word, size, mask, ahead, t, found);
    bool news = true;
    for (int order = kOrders - 1; order >= 0; --order) {
      const int64_t context = contexts[order];
      int64_t node = kNowhere;
      if (context != kNowhere) {
        node = found[order];
        const bool fresh = node == 0;
        if (fresh) {
          node = used;
          nodes[node] = {int32_t(context), int32_t(word), 0, kNone};
          add(*this, mask);
        }
        Node& before = nodes[context];
        if (news && before.last != kNone) {
          Counts& counts = counted(*this, before);
          counts.total += 1;
          counts.distinct += fresh;
        }
        if (before.last < kNone)
          counts[row(before.last)].follower = int32_t(word);
        else  // its first follower, or again the only one
          before.last = int32_t(word);
        if (news && !fresh) {
          counted(*this, nodes[node]).count += 1;
          // A shorter context counts what the longer ones had not seen.
          news = false;
        }
      }
      if (order + 1 == kOrders) continue;
      contexts[order + 1] = node;
      // What follows a node that was not there yet could not be looked for.
      if (node != found[order] && t + 1 < n)
        __builtin_prefetch(&heads[chain(node, words[t + 1], used, mask)]);
    }
  }
}

}  // namespace unbounded
