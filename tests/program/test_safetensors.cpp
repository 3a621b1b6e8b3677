#include "io/safetensors.hpp"
#include "program/subprocess.hpp"

#include <headroom/error.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

namespace headroom::bench {
namespace {

using headroom::testing::read_file;
using headroom::testing::TemporaryFolder;

std::string with_length(std::uint64_t length, const std::string& rest) {
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + rest;
}

std::string file_of(const std::string& header, std::size_t data_bytes) {
  return with_length(header.size(), header + std::string(data_bytes, '\0'));
}

std::string refusal(const std::string& path) {
  try {
    const SafetensorsReader reader(path);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(SafetensorsReader, WellFormedFiles_AreRead) {
  const TemporaryFolder folder;
  const std::string scalar = R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})";
  const std::string empty = R"({"e":{"dtype":"F32","shape":[0,3],"data_offsets":[0,0]},)"
                            R"("s":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  const std::string metadata = R"({"__metadata__":{"a":"b"}}        )";
  EXPECT_EQ(refusal(folder.file("1", file_of(scalar, 4))), "");
  EXPECT_EQ(refusal(folder.file("2", file_of(empty, 2))), "");
  EXPECT_EQ(refusal(folder.file("3", file_of(metadata, 0))), "");
  EXPECT_EQ(SafetensorsReader(folder.path("1")).read_f32("s").size(), 1U);
  EXPECT_EQ(SafetensorsReader(folder.path("2")).read_f32("e").size(), 0U);
}

// Each breaks one rule of the format; the refusal names the file and says which.
TEST(SafetensorsReader, HostileFiles_AreRefusedNamingFileAndRule) {
  const auto one = [](const std::string& body) { return "{\"t\":{" + body + "}}"; };
  struct Case {
    const char* name;
    std::string bytes;
    const char* says;
  };
  const Case cases[] = {
      {"empty file", "", "at least 8 bytes"},
      {"seven bytes", "1234567", "at least 8 bytes"},
      {"header beyond the limit", with_length(100'000'001, "{}"), "at most 100000000"},
      {"header length of all ones", with_length(~std::uint64_t{0}, "{}"), "at most 100000000"},
      {"header beyond the file", with_length(3, "{}"), "before the end of the file"},
      {"no header", file_of("", 0), "begins with '{'"},
      {"leading space", file_of(" {}", 0), "begins with '{'"},
      {"NUL after the header", file_of(std::string("{}\0{", 4), 0), "a NUL at offset 10"},
      {"not JSON", file_of("{\"t\":", 0), "JSON"},
      {"not UTF-8", file_of("{\"\xFF\":1}", 0), "JSON"},
      {"two values", file_of("{}{}", 0), "JSON"},
      {"array", file_of("[]", 0), "begins with '{'"},
      {"duplicate name",
       file_of(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"t":{"dtype":"U8","shape":[1],)"
               R"("data_offsets":[0,1]}})",
               1),
       "each name once"},
      {"deep nesting", file_of("{\"a\":" + std::string(100'000, '['), 0), "nested"},
      {"tensor is a number", file_of("{\"t\":1}", 0), "exactly dtype"},
      {"no offsets", file_of(one(R"("dtype":"U8","shape":[1])"), 1), "exactly dtype"},
      {"another key", file_of(one(R"("dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1)"), 1), "exactly dtype"},
      {"unknown dtype", file_of(one(R"("dtype":"F5","shape":[1],"data_offsets":[0,1])"), 1), "F5"},
      {"dtype is a number", file_of(one(R"("dtype":5,"shape":[1],"data_offsets":[0,1])"), 1), "exactly dtype"},
      {"negative extent", file_of(one(R"("dtype":"U8","shape":[-1],"data_offsets":[0,1])"), 1), "whole numbers"},
      {"real extent", file_of(one(R"("dtype":"U8","shape":[1.0],"data_offsets":[0,1])"), 1), "whole numbers"},
      {"extent of 2^64", file_of(one(R"("dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,1])"), 1),
       "whole numbers"},
      {"product that overflows to the size",
       file_of(one(R"("dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0])"), 0), "2^63"},
      {"end before begin", file_of(one(R"("dtype":"U8","shape":[1],"data_offsets":[1,0])"), 1), "not before it"},
      {"three offsets", file_of(one(R"("dtype":"U8","shape":[1],"data_offsets":[0,1,2])"), 1), "not before it"},
      {"offset beyond 2^63",
       file_of(one(R"("dtype":"U8","shape":[1],"data_offsets":[18446744073709551614,18446744073709551615])"), 1),
       "offset 0 of the data"},
      {"size is not its shape's", file_of(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), 4), "8 bytes"},
      {"gap at the start", file_of(one(R"("dtype":"U8","shape":[1],"data_offsets":[1,2])"), 2), "offset 0 of the data"},
      {"overlap",
       file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],)"
               R"("data_offsets":[1,3]}})",
               3),
       "offset 2 of the data"},
      {"truncated", file_of(one(R"("dtype":"U8","shape":[4],"data_offsets":[0,4])"), 3), "4 bytes of data"},
      {"bytes after the end", file_of(one(R"("dtype":"U8","shape":[4],"data_offsets":[0,4])"), 5), "4 bytes of data"},
      {"metadata is no text", file_of(R"({"__metadata__":{"a":1}})", 0), "texts by name"},
  };
  const TemporaryFolder folder;
  for (const Case& hostile : cases) {
    SCOPED_TRACE(hostile.name);
    const std::string path = folder.file("hostile.safetensors", hostile.bytes);
    const std::string text = refusal(path);
    EXPECT_NE(text.find(path), std::string::npos) << text;
    EXPECT_NE(text.find(hostile.says), std::string::npos) << text;
    EXPECT_LT(text.size(), 600U);
  }
}

TEST(SafetensorsReader, WhatIsNoFile_IsRefused) {
  const TemporaryFolder folder;
  EXPECT_NE(refusal(folder.path("missing")), "");
  EXPECT_NE(refusal(folder.path()).find("a folder"), std::string::npos);
}

TEST(SafetensorsReader, HalfTypes_BecomeTheSameNumbersInF32) {
  const std::string header = R"({"b":{"dtype":"BF16","shape":[3],"data_offsets":[0,6]},)"
                             R"("f":{"dtype":"F16","shape":[7],"data_offsets":[6,20]}})";
  const std::uint16_t words[] = {0x3F80, 0xC040, 0x0001,                                   // 1, -3, 2^-133
                                 0x3C00, 0xC200, 0x7BFF, 0x0001, 0x8400, 0x7C00, 0x7E00};  // 1, -3, 65504, ...
  std::string data(sizeof words, '\0');
  std::memcpy(data.data(), words, sizeof words);
  const TemporaryFolder folder;
  const SafetensorsReader reader(folder.file("h", with_length(header.size(), header + data)));
  EXPECT_EQ(reader.read_f32("b"), (std::vector<float>{1, -3, 0x1p-133F}));
  const std::vector<float> f = reader.read_f32("f");
  EXPECT_EQ((std::vector<float>{f.begin(), f.begin() + 6}),
            (std::vector<float>{1, -3, 65504, 0x1p-24F, -0x1p-14F, std::numeric_limits<float>::infinity()}));
  EXPECT_TRUE(std::isnan(f[6]));
}

TEST(SafetensorsReader, IntegerTensor_IsNotReadAsFloats) {
  const TemporaryFolder folder;
  const SafetensorsReader reader(
      folder.file("i", file_of(R"({"t":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})", 4)));
  EXPECT_THROW(static_cast<void>(reader.read_f32("t")), InvalidInput);
  EXPECT_THROW(static_cast<void>(reader.read_f32("other")), InvalidInput);
}

TEST(SafetensorsWriter, AnyOrder_ReadsBackBitwise) {
  const TemporaryFolder folder;
  const std::vector<float> b{-0.0F, 1e-40F, 3};
  {
    SafetensorsWriter writer(folder.path("m"), {{"b", {3}}, {"a", {2, 0}}, {"c", {}}});
    writer.write("c", std::vector<float>{7});
    writer.write("b", b);
    writer.write("a", {});
    writer.finish();
  }
  const SafetensorsReader reader(folder.path("m"));
  EXPECT_EQ(reader.entries().size(), 3U);
  EXPECT_EQ(reader.read_f32("c"), std::vector<float>{7});
  EXPECT_EQ(std::memcmp(reader.read_f32("b").data(), b.data(), 12), 0);
  EXPECT_EQ(reader.entries().at("a").shape, (std::vector<std::int64_t>{2, 0}));
}

TEST(SafetensorsWriter, NotFinished_LeavesTheOlderFileAndNothingElse) {
  const TemporaryFolder folder;
  static_cast<void>(folder.file("m", "older"));
  {
    SafetensorsWriter writer(folder.path("m"), {{"a", {1}}});
    EXPECT_THROW(writer.write("b", std::vector<float>{1}), std::logic_error);
    EXPECT_THROW(writer.write("a", std::vector<float>{1, 2}), std::logic_error);
    EXPECT_THROW(writer.finish(), std::logic_error);
  }
  EXPECT_EQ(read_file(folder.path("m")), "older");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(SafetensorsWriter, PlaceThatCannotBeWritten_IsAnInputOutputError) {
  EXPECT_THROW(SafetensorsWriter("/proc/headroom/m", {{"a", {1}}}), InputOutputError);
}

}  // namespace
}  // namespace headroom::bench
