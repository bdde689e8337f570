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

template <int V>
bool is(const Node<V>& node, int64_t parent, int64_t word) {
  return node.parent == parent && node.word == word;
}

// The node, or 0 if there is none.
template <int V>
int64_t find(const Tree<V>& tree, int64_t mask, int64_t parent, int64_t word) {
  int64_t node = tree.heads[chain(parent, word, tree.used, mask)];
  while (node && !is(tree.nodes[node], parent, word)) node = tree.nodes[node].next;
  return node;
}

// Whether a word may have followed: a context without counts had one follower, or none.
bool may_follow(int32_t last, int64_t word) { return last < kNone || (last != kNone && last == word); }

// Chain a new node, for which there is one chain more.
template <int V>
void add(Tree<V>& tree, int64_t& mask) {
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
    Node<V>& pushed = tree.nodes[each];
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

// A node's row of counts, which it gets if it had none.
template <int V>
Counts& counted(Tree<V>& tree, int32_t& last) {
  if (last >= kNone) {
    const int32_t followers = last != kNone;
    tree.counts[tree.rows] = {1, followers, followers, last};
    last = row(int32_t(tree.rows++));
  }
  return tree.counts[row(last)];
}

// ⌊2 log2 total⌋, at most kTotals - 1: contexts are told apart by how often they were met.
int met(int32_t total) {
  if (total >= 4096) return kTotals - 1;
  const int power = std::bit_width(uint32_t(total)) - 1;
  return 2 * power + (total * total >= 2 << 2 * power);
}

// What a context of that order says in a view; its divisor is zero if nothing ever followed it there.
template <int V>
void weigh_one(const Tree<V>& tree, int view, int order, bool both, Said& said) {
  said.divisor = 0.0;
  if (tree.contexts[view][order] == kNowhere) return;
  int32_t total = 1, distinct = 1, last = tree.nodes[tree.contexts[view][order]].last[view];
  if (last == kNone) return;
  if (last < kNone) {
    const Counts& counts = tree.counts[row(last)];
    total = counts.total, distinct = counts.distinct, last = counts.follower;
    if (total == 0) return;
  }
  // And by how often their next word was a repeat.
  const int repeats = int(int64_t(total - distinct) * kRepeats / total);
  const int kind = (((view + both) * kOrders + order) * kTotals + met(total)) * kRepeats + repeats;
  const double* learned = tree.learned[kind];
  const double mass = learned[0] + learned[1] + learned[2];
  said = {learned[0] / mass,           learned[1] / mass, learned[2] / mass,
          total - kDiscount * distinct, double(kind),      double(last)};
}

// The word that followed, if only one ever did, and once.
template <int V>
int32_t only_follower(const Tree<V>& tree, int32_t last) {
  if (last >= kNone || last == kAbsent) return last;
  const Counts& counts = tree.counts[row(last)];
  return counts.total == 1 ? counts.follower : kNone;
}

// Whether nothing followed a context yet.
template <int V>
bool barren(const Tree<V>& tree, int32_t last) {
  return last == kNone || (last < kNone && tree.counts[row(last)].total == 0);
}

// How often a word came after a context in a view, or zero; its node is 0 where that is implied.
template <int V>
int32_t times(const Tree<V>& tree, int view, int64_t context, int64_t word, int64_t node) {
  if (node == 0) return only_follower(tree, tree.nodes[context].last[view]) == word;
  const int32_t last = tree.nodes[node].last[view];
  return last == kAbsent ? 0 : last >= kNone ? 1 : tree.counts[row(last)].count;
}

// The probability of a word, from the shortest context to the longest and of each the first view;
// `place(order)` looks for its node after a context of the last view. `tell` hears the weights' part.
template <int V>
double chance(const Tree<V>& tree, const Said (*said)[V], int64_t word, int64_t size, auto&& place, auto&& tell) {
  double prob = word < size ? 1.0 / size : 0.0;
  bool known = true;
  for (int order = 0; order < kOrders && said[order][V - 1].divisor != 0.0; ++order) {
    // What a context never saw, no longer one saw; nor did the other view, which has not seen more.
    const int64_t context = tree.contexts[V - 1][order];
    const int32_t last = tree.nodes[context].last[V - 1];
    const int32_t only = order + 1 == kOrders ? only_follower(tree, last) : kNone;
    known = known && may_follow(last, word) && (only == kNone || only == word);
    const int64_t node = known && only == kNone ? place(order) : 0;
    known = known && (node || only == word);
    for (int view = 0; view < V; ++view) {
      const Said& here = said[order][view];
      if (here.divisor == 0.0) continue;
      const int32_t count = known ? times(tree, view, context, word, node) : 0;
      const double by_count = count ? (count - kDiscount) / here.divisor * here.counted : 0.0;
      const double by_last = count && here.follower == word ? here.last : 0.0;
      const double shorter = here.shorter * prob;
      prob = by_count + by_last + shorter;
      tell(here, by_count, by_last, shorter, prob);
    }
  }
  return prob;
}

// What the next words will look at, asked for while earlier ones are read.
//
// A node is looked for in four steps, a word apart: its chain's head, its first node, its second
// node, the rest. A context's node is the parent of the next word's: so each order runs two words
// behind the shorter one. What is found is only a hint: a node that was there stays, and one that
// was not is looked for again.
template <int V>
class Lookahead {
 public:
  Lookahead(const Tree<V>& tree, const int64_t* words, int64_t n) : tree_(tree), words_(words), n_(n) {
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
        for (const int32_t last : tree_.nodes[place.node].last)
          if (last < kNone && last != kAbsent) __builtin_prefetch(&tree_.counts[row(last)]);
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
    if (order) parent = t ? at(t - 1, order - 1).node : tree_.contexts[V - 1][order];
    // Longer contexts that are not known have no node.
    if (order && parent <= 0) return;
    const int64_t at = chain(parent, words_[t], tree_.used, mask);
    __builtin_prefetch(&tree_.heads[at]);
    if (may_follow(tree_.nodes[parent].last[V - 1], words_[t])) place = {parent, at};
  }

  const Tree<V>& tree_;
  const int64_t* words_;
  int64_t n_;
  Place places_[16][kOrders];
};

// The probability of word t, and its nodes after each context that has one; the weights may learn.
template <bool kLearn, int V>
double look(const Tree<V>& tree, int64_t word, int64_t size, int64_t mask, const Lookahead<V>& ahead, int64_t t,
            int64_t* found) {
  Said said[kOrders][V];
  tree.weigh(said);
  const auto place = [&](int order) {
    const int64_t context = tree.contexts[V - 1][order], node = ahead.found(t, order, context);
    return found[order] = node ? node : find(tree, mask, context, word);
  };
  // Each context learns as if no longer one were there. EM over the whole chain is 1 % better
  // alone, but 0.3 % worse in a mixture, which wants the sharper opinion.
  return chance(tree, said, word, size, place, [&](const Said& context, double count, double last,
                                                   double shorter, double prob) {
    // A word that no context can foresee says nothing about them.
    if (!kLearn || prob == 0.0) return;
    double* kind = tree.learned[int(context.kind)];
    kind[0] += count / prob;
    kind[1] += last / prob;
    kind[2] += shorter / prob;
  });
}

// A new node after a context; in each view it is absent, or came once.
template <int V>
int64_t grow(Tree<V>& tree, int64_t context, int32_t word, int64_t& mask) {
  const int64_t fresh = tree.used;
  tree.nodes[fresh] = {int32_t(context), word, 0, {}};
  for (int view = 0; view < V; ++view)
    tree.nodes[fresh].last[view] = only_follower(tree, tree.nodes[context].last[view]) == word ? kNone : kAbsent;
  add(tree, mask);
  return fresh;
}

// Count a word in one view, whose nodes after its contexts are there, but for one that is implied;
// those behind it are the next contexts.
template <int V>
void count(Tree<V>& tree, int view, int32_t word, const int64_t* found) {
  int64_t* contexts = tree.contexts[view];
  bool news = true;
  for (int order = kOrders - 1; order >= 0; --order) {
    const int64_t context = contexts[order], node = context == kNowhere ? kNowhere : found[order];
    if (context != kNowhere) {
      int32_t &before = tree.nodes[context].last[view], &here = tree.nodes[node].last[view];
      const bool fresh = node == 0 || here == kAbsent;
      if (fresh && node) here = kNone;
      if (news && before != kNone) {
        Counts& counts = counted(tree, before);
        counts.total += 1;
        counts.distinct += fresh;
      }
      if (before < kNone)
        tree.counts[row(before)].follower = word;
      else  // its first follower, or again the only one
        before = word;
      if (news && !fresh) {
        counted(tree, here).count += 1;
        // A shorter context counts what the longer ones had not seen.
        news = false;
      }
    }
    if (order + 1 < kOrders) contexts[order + 1] = node;
  }
}

}  // namespace

template <int V>
void Tree<V>::chain_all() {
  const int64_t all = used;
  int64_t mask = 0;
  heads[0] = 0;
  for (used = 1; used < all;) add(*this, mask);
}

template <int V>
void Tree<V>::weigh(Said (*said)[V]) const {
  for (int order = 0; order < kOrders; ++order)
    for (int view = 0; view < V; ++view)
      weigh_one(*this, view, order, view > 0 && said[order][0].divisor != 0.0, said[order][view]);
}

template <int V>
void Tree<V>::ask(const int64_t* words, int64_t n, int64_t size, const Said (*said)[V], double* probs) const {
  const int64_t mask = mask_for(used);
  const int64_t* longest = contexts[V - 1];
  const auto head = [&](int order, int64_t t) {
    return &heads[chain(longest[order], words[t < n ? t : n - 1], used, mask)];
  };
  for (int64_t t = 0; t < n; ++t) {
    for (int order = 0; order < 2 && said[order][V - 1].divisor != 0.0; ++order) {
      __builtin_prefetch(head(order, t + 16));
      __builtin_prefetch(&nodes[*head(order, t + 8)]);
    }
    const auto place = [&](int order) { return find(*this, mask, longest[order], words[t]); };
    probs[t] = chance(*this, said, words[t], size, place, [](auto&&...) {});
  }
}

template <int V>
void Tree<V>::walk(const int64_t* words, int64_t n, int64_t size, double* probs) {
  const int64_t mask = mask_for(used);
  Lookahead<V> ahead(*this, words, n);
  for (int64_t t = 0; t < n; ++t) {
    ahead.step(t, mask);
    int64_t found[kOrders] = {};
    probs[t] = look<false>(*this, words[t], size, mask, ahead, t, found);
    for (int view = 0; view < V; ++view)
      for (int order = kOrders - 1; order > 0; --order) {
        const int64_t node = contexts[view][order - 1] == kNowhere ? 0 : found[order - 1];
        contexts[view][order] = node && nodes[node].last[view] != kAbsent ? node : kNowhere;
      }
  }
}

template <int V>
void Tree<V>::read(const int64_t* words, int64_t n, int64_t size, double* probs) {
  int64_t mask = mask_for(used);
  Lookahead<V> ahead(*this, words, n);
  for (int64_t t = 0; t < n; ++t) {
    ahead.step(t, mask);
    const int64_t word = words[t];
    int64_t found[kOrders] = {};
    probs[t] = look<true>(*this, word, size, mask, ahead, t, found);
    for (int order = kOrders - 1; order >= 0; --order) {
      const int64_t context = contexts[V - 1][order];
      if (context == kNowhere || found[order]) continue;
      if (order + 1 == kOrders) {
        const int32_t last = nodes[context].last[V - 1], only = only_follower(*this, last);
        if (barren(*this, last)) continue;
        if (only > kNone) {
          // What it implied gets a node; in states of before it has one.
          const int64_t there = find(*this, mask, context, only), node = there ? there : grow(*this, context, only, mask);
          if (only == word) {
            found[order] = node;
            continue;
          }
        }
      }
      found[order] = grow(*this, context, int32_t(word), mask);
      // What follows a node that was not there yet could not be looked for.
      if (order + 1 < kOrders && t + 1 < n)
        __builtin_prefetch(&heads[chain(found[order], words[t + 1], used, mask)]);
    }
    for (int view = 0; view < V; ++view) count(*this, view, int32_t(word), found);
  }
}

template struct Tree<1>;
template struct Tree<2>;

}  // namespace unbounded
