#include <headroom/stream.hpp>

#include <utility>

#include "runtime/core/backend.hpp"
#include "runtime/core/check.hpp"

namespace headroom {

Device StreamRef::device() const { return Device(backend_->shared_from_this()); }
Ticket StreamRef::enqueue(Operation operation) const { return backend_->enqueue(id_, std::move(operation)); }
Ticket StreamRef::mark() const { return backend_->mark(id_); }
Ticket StreamRef::issued() const { return backend_->issued(id_); }
bool StreamRef::complete(Ticket ticket) const { return backend_->complete(id_, ticket); }

void StreamRef::wait(StreamRef producer, Ticket ticket) const {
  HEADROOM_EXPECT(producer.backend_ == backend_, "a stream can only wait for streams of its own device");
  backend_->wait(id_, producer.id_, ticket);
}

void StreamRef::wait(const Event& event) const {
  if (event.backend_ != nullptr) wait(StreamRef(event.backend_, event.stream_), event.ticket_);
}

Ticket StreamRef::knows(StreamRef producer) const {
  HEADROOM_EXPECT(producer.backend_ == backend_, "a stream only knows streams of its own device");
  return backend_->knows(id_, producer.id_);
}

void StreamRef::synchronize() const { synchronize(issued()); }
void StreamRef::synchronize(Ticket ticket) const { backend_->synchronize(id_, ticket); }
bool StreamRef::failed() const { return backend_->failed(id_); }

Stream::Stream(const Device& device, const StreamOptions& options)
    : device_(device), id_(device_.backend().create_stream(options)), owns_(true) {}

Stream::Stream(Stream&& other) noexcept
    : device_(other.device_), id_(other.id_), owns_(std::exchange(other.owns_, false)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this == &other) return *this;
  if (owns_) device_.backend().destroy_stream(id_);
  device_ = other.device_;
  id_ = other.id_;
  owns_ = std::exchange(other.owns_, false);
  return *this;
}

Stream::~Stream() {
  if (owns_) device_.backend().destroy_stream(id_);
}

void Event::record(StreamRef stream) {
  ticket_ = stream.mark();
  backend_ = &stream.backend();
  stream_ = stream.id();
}

bool Event::ready() const { return backend_ == nullptr || backend_->complete(stream_, ticket_); }

void Event::synchronize() const {
  if (backend_ != nullptr) backend_->synchronize(stream_, ticket_);
}

}  // namespace headroom
