// Paths that alternate: declared, learned, or drawn from the data.
#include "options/exit_codes.hpp"
#include "run/small_runs.hpp"
#include "workloads/chain.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace headroom::bench {
namespace {

/// Of one rank: whether each step gathered its second unit before it computed its first.
std::vector<bool> prefetching_steps(const Trace& trace) {
  std::vector<OperationRecord> records = trace.operations();
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) { return a.issued_ns < b.issued_ns; });
  std::vector<bool> steps;
  int gathered = -1;
  for (const OperationRecord& record : records) {
    const std::string_view name = record.name;
    if (name == "all_gather") gathered = record.unit;
    if (name == "embedding_forward") steps.push_back(gathered != 0);
  }
  return steps;
}

struct BranchingResult {
  std::vector<bool> prefetching;
  std::vector<PathStatus> paths;
  std::vector<StepRecord> steps;
  std::uint32_t crc32c = 0;
};

BranchingResult run_branching(const char* branches, const std::vector<Setting>& more = {}) {
  std::vector<Setting> settings{{"workload", "branching"}, {"branches", branches}, {"ranks", "2"}, {"steps", "6"}};
  settings.insert(settings.end(), more.begin(), more.end());
  const Config config = small_config(settings);
  const TokenData data = TokenData::load(data_options(config));
  BranchingResult result;
  run_ranks(2, config.host, {.deadline = std::chrono::seconds(20)}, [&](Job& job) {
    bench::Run run(config, job, data, make_workload(config), {.keep_trace = true, .replay_gemms = false});
    std::vector<StepRecord> steps;
    while (const std::optional<StepRecord> step = run.next()) steps.push_back(*step);
    const std::vector<bool> prefetching = prefetching_steps(run.device().trace());
    static_cast<void>(run.finish());
    if (job.rank() == 0) result = {prefetching, run.parameters().paths(), steps, run.crc32c()};
  });
  return result;
}

const PathStatus& status_of(const BranchingResult& result, const std::string& path) {
  for (const PathStatus& status : result.paths) {
    if (status.name == path) return status;
  }
  throw std::out_of_range("no path " + path);
}

TEST(Branching, DeclaredPathsThatAlternate_KeepTheirPrefetch) {
  const BranchingResult run = run_branching("known");
  EXPECT_EQ(run.prefetching, std::vector<bool>(6, true));
  for (const char* path : {"even", "odd"}) {
    EXPECT_TRUE(status_of(run, path).declared);
    EXPECT_EQ(status_of(run, path).steps, 3);
    EXPECT_EQ(status_of(run, path).prefetch_off, "");
  }
}

TEST(Branching, PathThatWasNotDeclared_PrefetchesFromItsSecondStepOn) {
  const BranchingResult run = run_branching("learned");
  EXPECT_EQ(run.prefetching, (std::vector<bool>{true, false, true, true, true, true}));
  EXPECT_TRUE(status_of(run, "even").declared);
  EXPECT_FALSE(status_of(run, "odd").declared);
  EXPECT_EQ(status_of(run, "odd").steps, 3);
  EXPECT_EQ(status_of(run, "odd").prefetch_off, "");
  EXPECT_EQ(run.crc32c, run_branching("known").crc32c);
  // A run may end right after the step that taught the path.
  const BranchingResult taught = run_branching("learned", {{"steps", "2"}});
  EXPECT_EQ(status_of(taught, "odd").steps, 1);
  EXPECT_EQ(taught.crc32c, run_branching("known", {{"steps", "2"}}).crc32c);
}

TEST(Branching, PathOfTheData_DiffersBetweenStepsAndPrefetchesNothing) {
  const std::vector<Setting> longer{{"steps", "12"}, {"accumulate", "2"}};
  const BranchingResult run = run_branching("data", longer);
  EXPECT_EQ(run.prefetching, std::vector<bool>(24, false));
  EXPECT_EQ(status_of(run, "data").steps, 12);
  EXPECT_NE(status_of(run, "data").prefetch_off, "");

  const Config config = small_config({{"workload", "branching"}, {"branches", "data"}, {"ranks", "2"}});
  const TokenData data = TokenData::load(data_options(config));
  const std::unique_ptr<Workload> workload = make_workload(config);
  std::array<int, 2> taken{};
  for (std::int64_t step = 0; step < 12; ++step) {
    ++taken.at(static_cast<std::size_t>(
        workload->plan_step(step, static_cast<std::uint64_t>(first_sample(config, step, 0, 0)), data).branch));
  }
  EXPECT_GT(taken[0], 0);
  EXPECT_GT(taken[1], 0);
}

TEST(Branching, LossOfEveryKindOfPath_Falls) {
  for (const char* branches : {"known", "data"}) {
    const BranchingResult run = run_branching(branches, {{"steps", "30"}, {"micro-batch", "8"}});
    EXPECT_LT(run.steps.back().loss, run.steps.front().loss - 0.5) << branches;
  }
}

/// Takes the other branch than its peers from the third step on.
class Stray final : public Workload {
 public:
  Stray(std::unique_ptr<Workload> model, bool strays) : model_(std::move(model)), strays_(strays) {}
  [[nodiscard]] std::vector<UnitSpec> units() const override { return model_->units(); }
  [[nodiscard]] std::vector<PathSpec> paths() const override { return model_->paths(); }
  [[nodiscard]] StepPlan plan_step(std::int64_t step, std::uint64_t cursor, const TokenData& data) const override {
    StepPlan plan = model_->plan_step(step, cursor, data);
    if (strays_ && step >= 2) plan.branch = 1 - plan.branch;
    return plan;
  }
  void run(StepTransaction& step, const MicroBatch& batch, const TensorSource& tensors) override {
    model_->run(step, batch, tensors);
  }
  [[nodiscard]] double model_flops_per_token(std::int64_t sequence) const override {
    return model_->model_flops_per_token(sequence);
  }
  [[nodiscard]] std::vector<GemmCall> gemm_calls(const BatchShape& shape) const override {
    return model_->gemm_calls(shape);
  }

 private:
  std::unique_ptr<Workload> model_;
  bool strays_;
};

TEST(Branching, RankThatTakesAnotherBranchAlone_IsNamedOnAllRanks) {
  for (const char* branches : {"known", "learned", "data"}) {
    SCOPED_TRACE(branches);
    const Config config = small_config({{"workload", "branching"}, {"branches", branches}, {"ranks", "3"}});
    const TokenData data = TokenData::load(data_options(config));
    std::vector<std::string> errors(3);
    run_ranks(3, config.host, {.deadline = std::chrono::seconds(20)}, [&](Job& job) {
      bench::Run run(config, job, data, std::make_unique<Stray>(make_workload(config), job.rank() == 1));
      try {
        while (run.next()) {
        }
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(job.rank())] = error.what();
        EXPECT_EQ(exit_code_of(error), 88) << error.what();
      }
    });
    EXPECT_NE(errors[0].find("rank 1"), std::string::npos) << errors[0];
    EXPECT_EQ(errors[1], errors[0]);
    EXPECT_EQ(errors[2], errors[0]);
  }
}

}  // namespace
}  // namespace headroom::bench
