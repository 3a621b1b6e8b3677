#pragma once

#include <headroom/parameters.hpp>
#include <headroom/process_memory.hpp>
#include <headroom/recording.hpp>

#include "options/config.hpp"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace headroom::bench {

/// Writes one rank's recording while its run goes on; does nothing until it is opened. `memory` must outlive it. What a
/// run that fails came to is recorded too: the end of this object ends the recording.
class Recorder {
 public:
  explicit Recorder(const CachingAllocator& memory) : memory_(memory) {}
  ~Recorder() { close(); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Throws, as all that writes: InputOutputError.
  void open(const std::string& path, const Config& config, const Communicator& world, std::vector<std::string> units);
  void note(const std::string& key, const std::string& text) const;
  void note_external(const MemoryUse& use) const;           ///< Bytes of the process that no allocator has.
  void note_schedules(const ParameterManager& parameters);  ///< Those that were not known before.
  /// Writes events where the allocator's log would soon drop them: between steps.
  void relieve_log();
  /// Writes everything so far, and takes what the trace holds.
  void drain();
  void finish();
  void close() noexcept;  ///< finish(), for a run that fails: warns where that fails too.

 private:
  const CachingAllocator& memory_;
  std::unique_ptr<RecordingWriter> writer_;  ///< While the recording is open.
  std::set<std::string> noted_;
};

}  // namespace headroom::bench
