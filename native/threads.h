// Rows shared out among threads: the parts and what is computed in each never depend on how many
// threads there are.
#pragma once

#include <cstddef>
#include <functional>

namespace unbounded {

// How many threads one call may use; at least one.
void set_threads(int threads);
int threads();

// Whether calls from this thread keep to it: for work that goes on beside others', and is not worth
// sharing out.
void stay_alone(bool alone);

// Calls work(start, stop) for parts of at most `part` rows that make up all rows. Threads take the
// next part as they are free. An exception in one part is thrown again here, after all have ended.
// A part may not call this itself.
void in_parallel(size_t rows, size_t part, const std::function<void(size_t, size_t)>& work);

}  // namespace unbounded
