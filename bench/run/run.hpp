#pragma once

#include <headroom/communicator.hpp>
#include <headroom/optimizer.hpp>
#include <headroom/parameters.hpp>

#include "data/token_data.hpp"
#include "options/config.hpp"
#include "run/rank_record.hpp"
#include "run/recorder.hpp"
#include "run/step_measure.hpp"
#include "workloads/workload.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace headroom::bench {

/// How many ranks share this process.
[[nodiscard]] int ranks_in_process(const Job& job);

struct RunOptions {
  bool keep_trace = false;  ///< Of the whole run; else it is read and dropped every few steps. Not while recording.
  bool replay_gemms = true;
  std::string recording_path = {};           ///< Empty: the run is not recorded.
  std::vector<std::int64_t> memory_at = {};  ///< After so many steps memory is read too, with nothing in flight.
  std::string command = {};                  ///< As it was given, for the recording.
};

/// One training run of one rank: its allocator, streams, communicators, model and optimizer, from the configuration's
/// seed or --init to its last step. Not thread-safe. `data` must outlive it. Every rank makes the same calls.
class Run {
 public:
  /// Collective. Throws, on every rank: OutOfMemory, InvalidInput, CollectiveMismatch.
  Run(const Config& config, const Job& job, const TokenData& data, std::unique_ptr<Workload> workload,
      const RunOptions& options = {});
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// The next step, complete; none after the last. The one after it is issued before this one is waited for. Throws:
  /// StepAborted, the same on every rank.
  [[nodiscard]] std::optional<StepRecord> next();
  /// After the last step: ends training on all ranks and says what was measured. Collective.
  [[nodiscard]] RankRecord finish();

  [[nodiscard]] ParameterManager& parameters() noexcept { return *parameters_; }
  [[nodiscard]] const CachingAllocator& memory() const noexcept { return memory_; }
  [[nodiscard]] const Workload& workload() const noexcept { return *workload_; }
  [[nodiscard]] const Config& config() const noexcept { return config_; }
  [[nodiscard]] const Device& device() const noexcept { return device_; }
  [[nodiscard]] std::int64_t tokens_per_step() const noexcept;
  [[nodiscard]] std::uint32_t crc32c() const noexcept { return crc32c_; }  ///< After finish().

 private:
  void prepare();
  void issue();
  void run_micro_batches(StepTransaction& step, int branch);
  void load_batch(std::int64_t micro, const Tensor& tokens, const Tensor& targets) const;
  void fold();
  void note_memory(const std::string& moment);  ///< Between steps. Collective.
  [[nodiscard]] bool is_fold_boundary() const;
  [[nodiscard]] std::vector<KnownRange> known_ranges() const;
  [[nodiscard]] CommunicationCounts wire_bytes() const;

  Config config_;
  RunOptions options_;
  bool shares_process_;
  const TokenData& data_;
  Device device_;
  Communicators communicators_;
  CachingAllocator memory_;
  Recorder recorder_;
  Stream compute_;
  TensorSource tensors_;
  std::unique_ptr<Workload> workload_;
  std::unique_ptr<ParameterManager> parameters_;
  std::unique_ptr<AdamW> optimizer_;

  std::int64_t issued_ = 0, folded_ = 0;
  std::deque<StepReport> in_flight_;
  std::vector<StepWindow> windows_;   ///< Of steps that are complete and not folded.
  std::uint64_t dropped_before_ = 0;  ///< Of the records that the trace still counts.
  StepMeasure measure_;
  CommunicationCounts first_step_bytes_;
  RankRecord record_;
  std::uint32_t crc32c_ = 0;
};

}  // namespace headroom::bench
