// Memory at an instant, of runs of the program's default model.
#include "report/inspection.hpp"
#include "report/peak_text.hpp"
#include "run/small_runs.hpp"

#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <map>

namespace headroom::bench {
namespace {

/// Rank 0's recording of a run, in a file that goes away with the test.
class RecordedRun {
 public:
  explicit RecordedRun(const std::vector<Setting>& settings) {
    static int count = 0;
    path_ = (std::filesystem::temp_directory_path() / std::string("headroom-inspect-")
                                                          .append(std::to_string(::getpid()))
                                                          .append("-")
                                                          .append(std::to_string(count++)))
                .string();
    const Config config = make_config(settings);
    const TokenData data = TokenData::load(data_options(config));
    run_ranks(config.ranks, config.host, {.deadline = std::chrono::seconds(60)}, [&](Job& job) {
      RunOptions options;
      options.replay_gemms = false;
      if (job.rank() == 0) options.recording_path = path_;
      Run run(config, job, data, make_workload(config), options);
      while (run.next()) {
      }
      static_cast<void>(run.finish());
      if (job.rank() == 0) peak = run.memory().peak();
    });
  }
  ~RecordedRun() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  RecordedRun(const RecordedRun&) = delete;
  RecordedRun& operator=(const RecordedRun&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

  MemoryPeak peak;

 private:
  std::string path_;
};

std::vector<Setting> small_gpt(const char* prefetch) {
  return {{"ranks", "2"}, {"layers", "4"}, {"width", "64"},
          {"seq", "32"},  {"steps", "2"},  {"backward-prefetch", prefetch}};
}

std::vector<Setting> default_gpt(const char* prefetch) {
  return {{"ranks", "2"}, {"seq", "32"}, {"micro-batch", "1"}, {"steps", "2"}, {"backward-prefetch", prefetch}};
}

/// The full parameters and gradients of an inspection's JSON: "h.5 parameter_full.current" and their bytes.
using Full = std::map<std::string, std::size_t>;
Full full_buffers(const Json& json) {
  Full full;
  for (const Json& buffer : json.at("buffers")) {
    const std::string category = buffer.at("category");
    const bool is_full = category.starts_with("parameter_full.") || category.starts_with("gradient_full.");
    if (!is_full || buffer.value("pending", false)) continue;
    full[buffer.at("unit").get<std::string>() + " " + category] += buffer.at("bytes").get<std::size_t>();
  }
  return full;
}

TEST(Inspect, DefaultGpt_PreHoldsExactlyTheNextUnitMoreThanPostInEachBackward) {
  const RecordedRun pre(default_gpt("pre")), post(default_gpt("post"));
  const Inspection any = inspect(pre.path(), {}, Clock::issue);
  ASSERT_EQ(any.info.units.size(), 9U);
  for (int layer = 7; layer >= 0; --layer) {
    const std::string unit = "h." + std::to_string(layer),
                      next = layer > 0 ? "h." + std::to_string(layer - 1) : "embedding";
    SCOPED_TRACE(unit);
    const InstantChoice choice = parse_instant("2/backward/" + unit);
    const Json before = to_json(inspect(pre.path(), choice, Clock::issue));
    const Json after = to_json(inspect(post.path(), choice, Clock::issue));
    Full more = full_buffers(before.at("instant"));
    const Full less = full_buffers(after.at("instant"));
    EXPECT_TRUE(more.contains(unit + " parameter_full.current"));
    EXPECT_TRUE(more.contains(unit + " gradient_full.computing"));
    for (const auto& [name, bytes] : less) {
      EXPECT_EQ(more[name], bytes) << name;
      more.erase(name);
    }
    const std::string added = next + " parameter_full.next";
    ASSERT_EQ(more.size(), 1U);
    ASSERT_EQ(more.begin()->first, added);
    std::size_t set_bytes = 0;
    for (const UnitLifetimes& lifetimes : any.units) {
      if (any.unit(lifetimes.unit) == next) set_bytes = lifetimes.full_bytes;
    }
    EXPECT_EQ(more.at(added), set_bytes);
    EXPECT_EQ(before.at("instant").at("categories").at("parameter_full.next"), set_bytes);
    EXPECT_EQ(after.at("instant").at("categories").at("parameter_full.next"), 0);
  }
}

TEST(Inspect, Peak_IsTheAllocatorsAndIsExplainedByItsBlocks) {
  const RecordedRun run(small_gpt("pre"));
  const Inspection found = inspect(run.path(), parse_instant("peak"), Clock::issue);
  EXPECT_EQ(found.instant.event, run.peak.event);
  EXPECT_EQ(found.instant.allocated_bytes(), run.peak.allocated_bytes);
  const Json json = to_json(found);
  std::size_t own = 0;
  for (const Json& block : json.at("peak").at("blocks")) {
    own += block.at("storage") == "own" ? block.at("bytes").get<std::size_t>() : 0;
  }
  EXPECT_EQ(own, run.peak.allocated_bytes);
  std::size_t live = 0;
  for (const Json& buffer : json.at("instant").at("buffers")) {
    live += buffer.at("pending").get<bool>() ? 0 : buffer.at("bytes").get<std::size_t>();
  }
  EXPECT_EQ(live, run.peak.allocated_bytes);
  const std::string text = to_text(found, true);
  EXPECT_NE(text.find("peak " + size_text(run.peak.allocated_bytes) + " at event "), std::string::npos) << text;
  EXPECT_NE(text.find("stand together"), std::string::npos) << text;
  EXPECT_NE(text.find("separate"), std::string::npos) << text;
}

TEST(Inspect, DeviceClock_ShowsWhatTheStreamsUsed) {
  const RecordedRun run(small_gpt("post"));
  const Inspection found = inspect(run.path(), parse_instant("2/backward/h.3"), Clock::device);
  ASSERT_TRUE(found.device.has_value());
  const Json json = to_json(found);
  const Full full = full_buffers(json.at("device"));
  EXPECT_TRUE(full.contains("h.3 parameter_full.current"));
  EXPECT_FALSE(full.contains("h.2 parameter_full.next"));
  std::size_t sum = 0;
  for (const Json& buffer : json.at("device").at("buffers")) sum += buffer.at("bytes").get<std::size_t>();
  EXPECT_EQ(sum, found.device->live_bytes);
  ASSERT_EQ(found.units.size(), 5U);
  for (const UnitLifetimes& unit : found.units) {
    EXPECT_EQ(unit.storage, ShardStorage::separate);
    for (const SetUse& set : unit.sets) {
      EXPECT_GT(set.gathering_ns, 0);
      EXPECT_EQ(set.gathering_ns + set.idle_ns + set.used_ns, set.end_ns - set.begin_ns);
    }
  }
}

TEST(Inspect, InstantThatIsNotThere_IsRefused) {
  const RecordedRun run({{"layers", "1"}, {"width", "16"}, {"heads", "1"}, {"seq", "8"}, {"steps", "1"}});
  for (const char* text : {"99999999", "7/backward/h.0", "1/backward/h.9", "1/sideways/h.0"}) {
    EXPECT_THROW(static_cast<void>(inspect(run.path(), parse_instant(text), Clock::issue)), InvalidInput) << text;
  }
  for (const char* text : {"", "-1", "1/backward", "x/backward/h.0", "1//h.0", "1/backward/", "1.5"}) {
    EXPECT_THROW(static_cast<void>(parse_instant(text)), InvalidInput) << text;
  }
  EXPECT_THROW(static_cast<void>(inspect(run.path() + ".not", {}, Clock::issue)), InvalidInput);
  std::filesystem::resize_file(run.path(), std::filesystem::file_size(run.path()) - 5);
  EXPECT_THROW(static_cast<void>(inspect(run.path(), {}, Clock::issue)), BadFile);
}

}  // namespace
}  // namespace headroom::bench
