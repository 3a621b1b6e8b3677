#include "runtime/core/check.hpp"
#include "runtime/core/host_memory.hpp"
#include "runtime/core/stream_machine.hpp"

namespace headroom::detail {
namespace {

class HostBackend final : public StreamMachine {
 public:
  HostBackend(const ExecutorFactory& make_executor, bool runs) : StreamMachine(make_executor), runs_(runs) {}

  [[nodiscard]] DeviceKind kind() const noexcept override { return DeviceKind::host; }
  [[nodiscard]] std::string name() const override { return "host"; }

  Ticket enqueue(StreamId stream, Operation operation) override {
    HEADROOM_EXPECT(static_cast<bool>(operation.host) != static_cast<bool>(operation.poll),
                    "operation " + std::string(operation.name) + " needs either `host` or `poll` to run on the host");
    return StreamMachine::enqueue(stream, std::move(operation));
  }

  [[nodiscard]] std::size_t page_bytes() const noexcept override { return host_memory::kPageBytes; }
  [[nodiscard]] MemoryInfo memory_info() const override { return host_memory::info(); }
  [[nodiscard]] std::byte* reserve(std::size_t bytes) override { return host_memory::reserve(bytes); }
  void unreserve(std::byte* base, std::size_t bytes) noexcept override { host_memory::unreserve(base, bytes); }
  [[nodiscard]] bool commit(std::byte* at, std::size_t bytes) noexcept override {
    return runs_ ? host_memory::commit(at, bytes) : host_memory::commit_untouched(at, bytes);
  }
  void decommit(std::byte* at, std::size_t bytes) noexcept override { host_memory::decommit(at, bytes); }

 private:
  bool runs_;  // operations; else pages are mapped, not taken
};

}  // namespace

std::shared_ptr<Backend> make_host_backend(const HostOptions& options) {
  const auto make_executor = [&options](StreamTable& table) {
    if (options.executor == Executor::none) return make_no_executor(table);
    return options.executor == Executor::seeded ? make_seeded_executor(table, options.seed)
                                                : make_threads_executor(table);
  };
  return std::make_shared<HostBackend>(make_executor, options.executor != Executor::none);
}

}  // namespace headroom::detail
