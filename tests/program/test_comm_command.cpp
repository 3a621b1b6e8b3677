#include "program/subprocess.hpp"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

namespace headroom::testing {
namespace {

using Json = nlohmann::json;

const std::vector<std::string> kSmall{"comm", "--from=1000", "--to=8KiB", "--repeats=3", "--json=-"};

std::vector<std::string> small(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = kSmall;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// What nccl-tests multiplies algbw with, by collective.
std::map<std::string, double> bus_factors(int world) {
  const double others = (world - 1.0) / world;
  return {
      {"all_gather", others}, {"reduce_scatter", others}, {"all_reduce", 2 * others}, {"broadcast", world > 1 ? 1 : 0}};
}

/// Sizes double from 1000 bytes to 8000, rounded down to equal parts; each collective once at each.
void expect_report(const Outcome& outcome, int world, std::size_t element_bytes) {
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(report.at("command"), "comm");
  EXPECT_EQ(report.at("world"), world);
  const Json& rows = report.at("collectives");
  ASSERT_EQ(rows.size(), 16U);
  const std::map<std::string, double> factors = bus_factors(world);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& row = rows[i];
    const std::size_t equal_parts = static_cast<std::size_t>(world) * element_bytes;
    EXPECT_EQ(row.at("bytes"), (std::size_t{1000} << (i / 4)) / equal_parts * equal_parts);
    EXPECT_GT(row.at("seconds").get<double>(), 0);
    const double algbw = row.at("algbw").get<double>();
    EXPECT_DOUBLE_EQ(algbw, row.at("bytes").get<double>() / row.at("seconds").get<double>());
    EXPECT_DOUBLE_EQ(row.at("busbw").get<double>(), algbw * factors.at(row.at("collective")));
    EXPECT_EQ(row.at("verified"), true);
    EXPECT_EQ(row.at("memcpy").is_null(), world == 1);
    if (world == 1) continue;
    EXPECT_GT(row.at("memcpy").get<double>(), 0);
    EXPECT_DOUBLE_EQ(row.at("share_of_memcpy").get<double>(),
                     row.at("busbw").get<double>() / row.at("memcpy").get<double>());
  }
}

TEST(CommCommand, RanksAsThreads_AreMeasuredAndVerified) {
  expect_report(run_headroom(small({"--ranks=2"})), 2, 4);
  expect_report(run_headroom(small({"--ranks=3", "--dtype=bf16"})), 3, 2);
  expect_report(run_headroom(small({"--ranks=2", "--executor=seeded"})), 2, 4);
}

TEST(CommCommand, OneRank_HasNoWireAndNoShare) { expect_report(run_headroom(small({})), 1, 4); }

TEST(CommCommand, UnderMpi_PrintsOneReport) {
  expect_report(run_headroom_under_mpi(2, small({})), 2, 4);
  expect_report(run_headroom_under_mpi(3, small({"--dtype=bf16"})), 3, 2);
}

TEST(CommCommand, WithoutJson_PrintsATable) {
  const Outcome outcome = run_headroom({"comm", "--ranks=2", "--from=4KiB", "--to=4KiB", "--repeats=1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"2 ranks (threads), f32", "busbw GB/s", "memcpy GB/s", "share", "all_gather ",
                           "reduce_scatter ", "all_reduce ", "broadcast ", "4096"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
}

}  // namespace
}  // namespace headroom::testing
