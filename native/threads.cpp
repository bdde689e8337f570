#include "threads.h"

#include <unistd.h>

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
  Job(const std::function<void(size_t, size_t)>& each, size_t all, size_t some)
      : work(&each), rows(all), part(some) {}

  const std::function<void(size_t, size_t)>* work;
  size_t rows, part;
  std::atomic<size_t> next{0};
  std::exception_ptr failed;
  std::mutex failing;

  void run() {
    for (size_t start; (start = next.fetch_add(part)) < rows;) {
      try {
        (*work)(start, start + part < rows ? start + part : rows);
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
    for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { wait(); });
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
      jobs_.push_back({&job, 0});
    }
    some_.notify_all();
    job.run();
    // Nobody may take it up any more, and who has must be done with it.
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [&] { return find(&job)->helpers == 0; });
    jobs_.erase(find(&job));
  }

 private:
  struct Open {
    Job* job;
    int helpers;
  };

  std::vector<Open>::iterator find(const Job* job) {
    auto at = jobs_.begin();
    while (at->job != job) ++at;
    return at;
  }

  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      Job* job = nullptr;
      some_.wait(lock, [&] {
        for (auto& open : jobs_)
          if (open.job->next < open.job->rows) {
            job = open.job;
            ++open.helpers;
            return true;
          }
        return ending_;
      });
      if (!job) return;
      lock.unlock();
      job->run();
      lock.lock();
      --find(job)->helpers;
      done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable some_, done_;
  std::vector<Open> jobs_;
  std::vector<std::thread> threads_;
  bool ending_ = false;
};

int count = 1;
std::shared_ptr<Pool> pool;
std::mutex choosing;
pid_t owner = 0;

std::shared_ptr<Pool> current() {
  std::lock_guard<std::mutex> lock(choosing);
  if (pool && owner != getpid()) {
    // The workers did not come along into a forked process: leave what is left of them alone.
    new std::shared_ptr<Pool>(std::move(pool));
    pool = nullptr;
  }
  if (!pool && count > 1) {
    pool = std::make_shared<Pool>(count - 1);
    owner = getpid();
  }
  return pool;
}

}  // namespace

void set_threads(int threads) {
  std::shared_ptr<Pool> old;
  std::lock_guard<std::mutex> lock(choosing);
  threads = threads < 1 ? 1 : threads;
  if (threads == count) return;
  count = threads;
  if (owner == getpid()) old = std::move(pool);
  pool = nullptr;
}

int threads() { return count; }

void in_parallel(size_t rows, size_t part, const std::function<void(size_t, size_t)>& work) {
  Job job(work, rows, part ? part : 1);
  auto workers = rows > job.part ? current() : nullptr;
  if (workers)
    workers->run(job);
  else
    job.run();
  if (job.failed) std::rethrow_exception(job.failed);
}

}  // namespace unbounded
