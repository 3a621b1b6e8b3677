#include "collectives/reference.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <stdexcept>
#include <string>

namespace headroom::testing {
namespace {

void expect_refused(const std::function<void()>& act, const std::string& part) {
  try {
    act();
    ADD_FAILURE() << "accepted, expected a refusal that says: " << part;
  } catch (const std::logic_error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

class CommunicatorChecks : public ::testing::Test {
 protected:
  Job job = Job::from_environment();
  Communicators c = job.communicators();
  Stream stream{job.device()};
  std::vector<float> four = std::vector<float>(4), five = std::vector<float>(5);
  std::vector<double> wide = std::vector<double>(4);
};

TEST_F(CommunicatorChecks, AllGather_BadArguments_AreRefusedBeforeAnythingIsEnqueued) {
  expect_refused([&] { c.gather->all_gather(view_of(four), view_of(five), stream); }, "recv has 5 elements, expected");
  expect_refused([&] { c.gather->all_gather(view_of(four), view_of(wide), stream); }, "the same dtype");
  expect_refused([&] { c.gather->all_gather(slice_of(five, 0, 4), slice_of(five, 1, 4), stream); }, "overlap");
  expect_refused([&] { c.gather->all_gather(view_of(four), {nullptr, DType::f32, {4, 1, 1, 1}}, stream); }, "null");
  expect_refused(
      [&] {
        c.gather->all_gather(view_of(four), {four.data(), DType::f32, {-2, -2, 1, 1}}, stream);
      },
      "negative");
  auto* const odd = reinterpret_cast<std::byte*>(five.data()) + 1;
  expect_refused([&] { c.gather->all_gather(view_of(four), view(odd, 4, DType::f32), stream); }, "aligned");
  EXPECT_EQ(stream.ref().issued(), 0U);
}

TEST_F(CommunicatorChecks, ReduceScatter_BadArguments_AreRefused) {
  expect_refused([&] { c.reduce->reduce_scatter(view_of(wide), view_of(wide), stream); }, "expected f32 or bf16");
  expect_refused([&] { c.reduce->reduce_scatter(view_of(five), view_of(four), stream); }, "send has 5 elements");
  EXPECT_EQ(stream.ref().issued(), 0U);
}

TEST_F(CommunicatorChecks, OtherOperations_BadArguments_AreRefused) {
  const TensorView integers = view(four.data(), 4, DType::i32);
  expect_refused([&] { c.reduce->all_reduce(integers, {}, stream); }, "expected f32, f64 or bf16");
  expect_refused([&] { c.control->broadcast(view_of(four), 1, stream); }, "expected 0 <= root < 1");
  expect_refused([&] { c.control->broadcast(view_of(four), -1, stream); }, "root is -1");
  std::array<std::uint64_t, 65> words{};
  expect_refused([&] { c.control->agree(words); }, "65 words, expected at most 64");
  std::array<std::byte, 4097> bytes{};
  expect_refused([&] { c.control->share(bytes, 0); }, "4097 bytes, expected at most 4096");
  EXPECT_EQ(stream.ref().issued(), 0U);
}

TEST(Job, NotUnderMpirun_IsAlone) {
  const Job job = Job::from_environment();
  EXPECT_FALSE(launched_by_mpi());
  EXPECT_EQ(job.rank(), 0);
  EXPECT_EQ(job.world(), 1);
  EXPECT_STREQ(job.launcher(), "alone");
}

TEST(Job, Aborted_EndsItsCommunicatorsOldAndNew) {
  const Job job = Job::from_environment();
  const Communicators old = job.communicators();
  std::array<std::uint64_t, 1> words{5};
  old.control->agree(words);
  job.abort(1, "enough");
  EXPECT_THROW(old.control->agree(words), CommunicatorError);
  EXPECT_THROW(job.communicators().control->agree(words), CommunicatorError);
}

}  // namespace
}  // namespace headroom::testing
