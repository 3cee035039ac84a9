#include "stream/kafka/surveyor.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace rivulet::stream::kafka {

Surveyor::~Surveyor() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void Surveyor::start(rd_kafka_s* client, std::vector<Question> questions, Duration patience) {
  begin([this, client, questions = std::move(questions), patience] { run(client, questions, patience); });
}

void Surveyor::start(OpenClient open, std::vector<Question> questions, Duration patience) {
  begin([this, open = std::move(open), questions = std::move(questions), patience] {
    if (const auto client = open()) run(client->handle(), questions, patience);
  });
}

void Surveyor::begin(std::function<void()> work) {
  over_ = false;
  try {
    thread_ = std::thread([this, work = std::move(work)] {
      work();
      const std::scoped_lock lock(mutex_);
      over_ = true;
      news_.notify_one();
    });
    busy_ = true;
  } catch (const std::system_error&) {  // no thread available: the owner retries later
  }
}

void Surveyor::run(rd_kafka_s* client, const std::vector<Question>& questions, Duration patience) {
  survey(client, questions, patience, stop_, [&](Finding finding) {
    const std::scoped_lock lock(mutex_);
    findings_.push_back(std::move(finding));
    news_.notify_one();
  });
}

std::vector<Finding> Surveyor::take() {
  std::vector<Finding> taken;
  if (!busy_) return taken;
  {
    const std::scoped_lock lock(mutex_);
    taken.swap(findings_);
    busy_ = !over_;
  }
  if (!busy_) thread_.join();
  return taken;
}

void Surveyor::wait(Duration longest) {
  if (!busy_) return;
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, std::max<Duration>(longest, Duration(0)),
                 [this] { return over_ || !findings_.empty(); });
}

}  // namespace rivulet::stream::kafka
