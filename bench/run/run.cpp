#include "run/run.hpp"

#include "options/agreement.hpp"
#include "run/gemm_replay.hpp"
#include "run/model_files.hpp"

#include <spdlog/spdlog.h>
#include <algorithm>
#include <array>
#include <new>
#include <string_view>

namespace headroom::bench {
namespace {

constexpr std::int64_t kStepsInFlight = 2;
constexpr std::int64_t kStepsAFold = 8;  // the trace of so many steps is kept

Device traced(const Device& device) {
  device.trace().clear();
  device.trace().set_enabled(true);
  return device;
}

AllocatorOptions allocator_options(const Config& config, const RunOptions& run) {
  AllocatorOptions options;
  options.limit_bytes = config.memory_limit_bytes;
  if (run.recording_path.empty() && !run.keep_trace) options.event_capacity = 0;  // nobody reads them
  return options;
}

void add_throttle(const Trace& trace, std::int64_t since_ns, RankRecord& record) {
  for (const HostSpan& span : trace.host_spans()) {
    if (span.cause != HostCause::throttle || span.start_ns < since_ns) continue;
    ++record.throttle_waits;
    record.throttle_seconds += static_cast<double>(span.end_ns - span.start_ns) * 1e-9;
  }
}

}  // namespace

int ranks_in_process(const Job& job) { return std::string_view(job.launcher()) == "threads" ? job.world() : 1; }

Run::Run(const Config& config, const Job& job, const TokenData& data, std::unique_ptr<Workload> workload,
         const RunOptions& options)
    : config_(config),
      options_(options),
      shares_process_(ranks_in_process(job) > 1),
      data_(data),
      device_(traced(job.device())),
      communicators_(job.communicators(config.group_options(job.world()))),
      memory_(device_, allocator_options(config, options)),
      recorder_(memory_),
      compute_(device_),
      tensors_(memory_, compute_),
      workload_(std::move(workload)),
      parameters_(
          std::make_unique<ParameterManager>(communicators_, memory_, compute_.ref(), config.parameter_options())) {
  prepare();
}

Run::~Run() { recorder_.close(); }

void Run::prepare() {
  run_checked(*communicators_.control, [this] {
    std::vector<std::string> units;
    for (const UnitSpec& unit : workload_->units()) units.push_back(unit.name);
    recorder_.open(options_.recording_path, config_, *communicators_.control, std::move(units));
    if (!options_.command.empty()) recorder_.note("command", options_.command);
    add_units(*workload_, *parameters_);
    optimizer_ = std::make_unique<AdamW>(*parameters_, config_.adamw);
    if (!config_.init_dir.empty()) load_gpt2(*parameters_, config_.init_dir);
  });
  parameters_->set_policy(config_.policy());
  parameters_->prepare();
  run_checked(*communicators_.control, [this] { recorder_.note_schedules(*parameters_); });
  note_memory("init");
}

std::int64_t Run::tokens_per_step() const noexcept {
  return config_.seq * config_.micro_batch * config_.accumulate * communicators_.control->size();
}

std::optional<StepRecord> Run::next() {
  while (issued_ < config_.steps && static_cast<std::int64_t>(in_flight_.size()) < kStepsInFlight) {
    if (is_fold_boundary() && folded_ < issued_) {
      if (!in_flight_.empty()) break;
      fold();
      recorder_.drain();
      if (!options_.keep_trace) device_.trace().clear();
    }
    issue();
  }
  if (in_flight_.empty()) return std::nullopt;
  const StepReport report = in_flight_.front();
  in_flight_.pop_front();
  StepRecord step;
  step.step = report.step();
  step.loss = report.loss();
  step.gradient_norm = report.gradient_norm();
  step.skipped = report.skipped();
  step.tokens = tokens_per_step();
  const StepWindow window{report.begin_ns(), report.end_ns()};
  step.seconds = static_cast<double>(window.end_ns - window.begin_ns) * 1e-9;
  windows_.push_back(window);
  recorder_.relieve_log();
  return step;
}

void Run::issue() {
  const StepPlan plan =
      workload_->plan_step(issued_, static_cast<std::uint64_t>(first_sample(config_, issued_, 0, 0)), data_);
  StepTransaction step = parameters_->begin_step(plan.options);
  try {
    run_micro_batches(step, plan.branch);
  } catch (const OutOfMemory& refusal) {
    step.abort(Fault::allocation, refusal.what());
  } catch (const Error&) {
    throw;  // every rank knows of it, or can no longer vote
  } catch (const std::bad_alloc&) {
    step.abort(Fault::allocation, "memory of this process: it is used up");
  } catch (const std::exception& error) {
    step.abort(Fault::exception, error.what());
  }
  in_flight_.push_back(step.commit(*optimizer_));
  ++issued_;
}

void Run::run_micro_batches(StepTransaction& step, int branch) {
  const BatchShape shape{config_.micro_batch, config_.seq};
  for (std::int64_t micro = 0; micro < config_.accumulate; ++micro) {
    const Tensor tokens = tensors_.make("tokens", Category::input, -1, {shape.tokens(), 1, 1, 1}, DType::i32);
    const Tensor targets = tensors_.make("targets", Category::input, -1, {shape.tokens(), 1, 1, 1}, DType::i32);
    load_batch(micro, tokens, targets);
    workload_->run(step, {shape, tokens.view, targets.view, 1.0 / static_cast<double>(tokens_per_step()), branch},
                   tensors_);
  }
}

void Run::load_batch(std::int64_t micro, const Tensor& tokens, const Tensor& targets) const {
  Operation load;
  load.name = "load_batch";
  load.bytes = static_cast<double>(tokens.view.bytes() + targets.view.bytes());
  load.host = [&data = data_, first = first_sample(config_, issued_, micro, communicators_.control->rank()),
               rows = config_.micro_batch, into = tokens.view, next = targets.view] {
    const auto numel = static_cast<std::size_t>(into.numel());
    data.batch(first, rows, {into.as<std::int32_t>(), numel}, {next.as<std::int32_t>(), numel});
  };
  compute_.ref().enqueue(std::move(load));
}

CommunicationCounts Run::wire_bytes() const {
  std::vector<const Communicator*> counted;
  for (const auto& each : {communicators_.gather, communicators_.reduce, communicators_.replicate}) {
    const bool is_new = std::find(counted.begin(), counted.end(), each.get()) == counted.end();
    if (each && is_new) counted.push_back(each.get());
  }
  CommunicationCounts bytes;
  for (const Communicator* communicator : counted) {
    bytes.bytes_sent += static_cast<double>(communicator->bytes_sent());
    bytes.bytes_received += static_cast<double>(communicator->bytes_received());
  }
  return bytes;
}

/// What this process has outside its allocators; nothing runs now.
std::vector<KnownRange> Run::known_ranges() const {
  std::vector<KnownRange> known = kernels::workspaces();
  known.push_back({data_.tokens().data(), data_.tokens().size_bytes(), "training_data", "TokenData::tokens"});
  std::vector<const Communicator*> seen;
  for (const auto& each :
       {communicators_.gather, communicators_.reduce, communicators_.control, communicators_.replicate}) {
    if (!each || std::find(seen.begin(), seen.end(), each.get()) != seen.end()) continue;
    seen.push_back(each.get());
    known.push_back({each->staging().data(), each->staging().size(), "reduction_staging", "Communicator::staging"});
  }
  return known;
}

void Run::note_memory(const std::string& moment) {
  const MemoryUse use =
      memory_of_process(*communicators_.control, shares_process_, memory_, [this] { return known_ranges(); });
  record_.memory_use.push_back({moment, use, memory_.statistics()});
}

/// Everything is folded before the next step is issued: after the first step, then every few, so that what a fold takes
/// for its work was taken once before a run is in its stride.
bool Run::is_fold_boundary() const {
  const auto& asked = options_.memory_at;
  return issued_ % kStepsAFold == 1 || std::find(asked.begin(), asked.end(), issued_) != asked.end();
}

void Run::fold() {
  compute_.ref().synchronize();
  Trace& trace = device_.trace();
  const bool complete = trace.dropped() == 0;
  const bool first_alone = issued_ == 1 && first_measured_step(config_.steps) == 1;
  if (first_alone) {
    first_step_bytes_ = wire_bytes();
  } else if (complete) {
    measure_.fold(trace, windows_, compute_.ref().id());
  }
  if (!windows_.empty()) add_throttle(trace, windows_.front().begin_ns, record_);
  const std::vector<SetLifetime> lifetimes = parameters_->take_lifetimes();
  record_.parameter_sets_peak = std::max(record_.parameter_sets_peak, parameters_->parameter_sets_peak());
  record_.gradient_sets_peak = std::max(record_.gradient_sets_peak, parameters_->gradient_sets_peak());
  if (complete) {
    record_.parameter_sets_peak = std::max(record_.parameter_sets_peak, live_sets_peak(lifetimes, false, trace));
    record_.gradient_sets_peak = std::max(record_.gradient_sets_peak, live_sets_peak(lifetimes, true, trace));
  }
  record_.dropped_trace_records += trace.dropped() - dropped_before_;
  dropped_before_ = options_.keep_trace ? trace.dropped() : 0;
  if (issued_ == 1) {
    note_memory("first_step");
    if (!options_.keep_trace) trace.reserve(static_cast<std::size_t>(std::min(kStepsAFold, config_.steps)));
  }
  const auto& asked = options_.memory_at;
  if (std::find(asked.begin(), asked.end(), issued_) != asked.end()) {
    note_memory(std::string("step_").append(std::to_string(issued_)));
  }
  folded_ = issued_;
  windows_.clear();
}

RankRecord Run::finish() {
  Communicator& control = *communicators_.control;
  if (folded_ < issued_) fold();
  measure_.write_means(record_);
  if (record_.dropped_trace_records > 0) {
    spdlog::warn("rank {}: the trace was full and lost {} records: the report's times are of {} steps of {}",
                 control.rank(), record_.dropped_trace_records, record_.measured_steps, config_.steps);
  }
  const CommunicationCounts bytes = wire_bytes();
  const auto steps = static_cast<double>(issued_ - first_measured_step(config_.steps));
  record_.communication.bytes_sent = (bytes.bytes_sent - first_step_bytes_.bytes_sent) / steps;
  record_.communication.bytes_received = (bytes.bytes_received - first_step_bytes_.bytes_received) / steps;
  run_checked(control, [this] { recorder_.note_schedules(*parameters_); });
  record_.memory = memory_.statistics();
  record_.peak = memory_.peak();
  note_memory("steady");
  run_checked(control, [this] {
    recorder_.note_external(record_.memory_use.back().use);
    recorder_.finish();
  });

  device_.trace().set_enabled(false);
  crc32c_ = parameters_->crc32c();
  if (!config_.export_dir.empty()) export_gpt2(*parameters_, control, config_);
  if (options_.replay_gemms) {
    const std::vector<GemmCall> calls = workload_->gemm_calls({config_.micro_batch, config_.seq});
    try {
      record_.gemm_flops_per_second = replay_gemms(calls, tensors_);
    } catch (const OutOfMemory&) {  // a run under a tight limit is not to fail for its report; the rate stays unknown
      record_.gemm_flops_per_second.reset();
    }
  }
  parameters_->finish();
  return record_;
}

}  // namespace headroom::bench
