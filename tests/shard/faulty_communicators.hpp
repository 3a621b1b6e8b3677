#pragma once

#include <headroom/communicator.hpp>

#include <atomic>
#include <memory>
#include <utility>

namespace headroom::test {

class ForwardingCommunicator : public Communicator {
 public:
  explicit ForwardingCommunicator(std::shared_ptr<Communicator> real) : real_(std::move(real)) {}
  [[nodiscard]] int rank() const noexcept override { return real_->rank(); }
  [[nodiscard]] int size() const noexcept override { return real_->size(); }
  void all_gather(TensorView send, TensorView recv, StreamRef stream, int unit) override {
    real_->all_gather(send, recv, stream, unit);
  }
  void reduce_scatter(TensorView send, TensorView recv, StreamRef stream, int unit) override {
    real_->reduce_scatter(send, recv, stream, unit);
  }
  void all_reduce(TensorView buffer, TensorView scratch, StreamRef stream, int unit) override {
    real_->all_reduce(buffer, scratch, stream, unit);
  }
  void broadcast(TensorView buffer, int root, StreamRef stream) override { real_->broadcast(buffer, root, stream); }
  [[nodiscard]] std::size_t all_reduce_scratch_bytes(std::size_t bytes) const noexcept override {
    return real_->all_reduce_scratch_bytes(bytes);
  }
  void agree(std::span<std::uint64_t> words) override { real_->agree(words); }
  void share(std::span<std::byte> bytes, int root) override { real_->share(bytes, root); }
  void abort(const char* reason) noexcept override { real_->abort(reason); }
  [[nodiscard]] std::uint64_t bytes_sent() const noexcept override { return real_->bytes_sent(); }
  [[nodiscard]] std::uint64_t bytes_received() const noexcept override { return real_->bytes_received(); }

 private:
  std::shared_ptr<Communicator> real_;
};

/// The all-gather after `good` ones fails, once `when` says so.
class FailingGather final : public ForwardingCommunicator {
 public:
  FailingGather(std::shared_ptr<Communicator> real, int good, const std::atomic<bool>& when)
      : ForwardingCommunicator(std::move(real)), good_(good), when_(when) {}
  void all_gather(TensorView send, TensorView recv, StreamRef stream, int unit) override {
    if (good_-- > 0) {
      ForwardingCommunicator::all_gather(send, recv, stream, unit);
      return;
    }
    Operation operation;
    operation.name = "failing_gather";
    operation.poll = [this] {
      if (!when_) {
        return Progress::blocked;
      }
      abort("the wire was cut");
      throw CommunicatorError("the wire was cut");
    };
    stream.enqueue(std::move(operation));
  }

 private:
  int good_;
  const std::atomic<bool>& when_;
};

/// One bit of what a peer sent arrives wrong, in the gather of unit 2.
class CorruptingGather final : public ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  void all_gather(TensorView send, TensorView recv, StreamRef stream, int unit) override {
    ForwardingCommunicator::all_gather(send, recv, stream, unit);
    if (unit == 2 && recv.dtype == DType::f32) {
      Operation operation;
      operation.name = "flip_a_bit";
      operation.host = [at = recv.as<unsigned char>()] { at[5] ^= 0x10U; };
      stream.enqueue(std::move(operation));
    }
  }
};

}  // namespace headroom::test
