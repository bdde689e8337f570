#include "threads.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace unbounded {
namespace {

struct Job {
  const std::function<void(size_t, size_t)>& work;
  size_t rows, part;
  std::atomic<size_t> next{0};
  std::exception_ptr failed{};
  std::mutex failing{};
  int helpers = 0;  // workers that are at it; guarded by the pool

  void run() {
    for (size_t start; (start = next.fetch_add(part)) < rows;) {
      try {
        work(start, std::min(start + part, rows));
      } catch (...) {
        std::lock_guard<std::mutex> lock(failing);
        if (!failed) failed = std::current_exception();
        next = rows;
      }
    }
  }
};

// Workers that wait for jobs. Several Python threads may call at once: each brings its own job and
// works on it itself, so nobody waits for a worker that is busy elsewhere.
class Pool {
 public:
  explicit Pool(int workers) {
    for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { help(); });
  }

  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
    }
    some_.notify_all();
    for (auto& each : threads_) each.join();
  }

  void run(Job& job) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      jobs_.push_back(&job);
    }
    some_.notify_all();
    job.run();
    // Nobody may take it up any more, and who has must be done with it.
    std::unique_lock<std::mutex> lock(mutex_);
    std::erase(jobs_, &job);
    done_.wait(lock, [&] { return job.helpers == 0; });
  }

 private:
  void help() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      auto open = jobs_.end();
      some_.wait(lock, [&] {
        open = std::find_if(jobs_.begin(), jobs_.end(), [](Job* job) { return job->next < job->rows; });
        return open != jobs_.end() || ending_;
      });
      if (open == jobs_.end()) return;
      Job* job = *open;
      ++job->helpers;
      lock.unlock();
      job->run();
      lock.lock();
      --job->helpers;
      done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable some_, done_;
  std::vector<Job*> jobs_;
  std::vector<std::thread> threads_;
  bool ending_ = false;
};

int count = 1;
thread_local bool alone = false;
std::shared_ptr<Pool> pool;
std::mutex choosing;
pid_t owner = 0;

// Workers do not come along into a forked process: what is left of them there is left alone.
void leave_behind() {
  if (pool && owner != getpid()) new std::shared_ptr<Pool>(std::move(pool));
}

std::shared_ptr<Pool> current() {
  std::lock_guard<std::mutex> lock(choosing);
  leave_behind();
  if (!pool && count > 1) {
    pool = std::make_shared<Pool>(count - 1);
    owner = getpid();
  }
  return pool;
}

}  // namespace

void set_threads(int threads) {
  std::shared_ptr<Pool> old;  // ended when nobody is kept waiting for it
  std::lock_guard<std::mutex> lock(choosing);
  threads = std::max(threads, 1);
  if (threads == count) return;
  count = threads;
  leave_behind();
  old = std::move(pool);
}

int threads() { return count; }

void stay_alone(bool stay) { alone = stay; }

void in_parallel(size_t rows, size_t part, const std::function<void(size_t, size_t)>& work) {
  Job job{work, rows, std::max<size_t>(part, 1)};
  auto workers = rows > job.part && !alone ? current() : nullptr;
  if (workers)
    workers->run(job);
  else
    job.run();
  if (job.failed) std::rethrow_exception(job.failed);
}

}  // namespace unbounded
