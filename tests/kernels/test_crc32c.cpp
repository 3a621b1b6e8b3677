#include "runtime/core/crc32c_table.hpp"

#include <headroom/crc32c.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace headroom {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// RFC 3720, appendix B.4, and the check value of the CRC catalogue.
TEST(Crc32c, KnownAnswers_Equal) {
  EXPECT_EQ(crc32c({}), 0U);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283U);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\0'))), 0x8A9136AAU);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\xFF'))), 0x62A8AB43U);
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending.push_back(static_cast<char>(i));
  EXPECT_EQ(crc32c(bytes_of(ascending)), 0x46DD794EU);
}

TEST(Crc32c, AnyCut_EqualsTheWhole) {
  std::string text;
  for (int i = 0; i < 100; ++i) text.push_back(static_cast<char>(i * 37));
  const std::uint32_t whole = crc32c(bytes_of(text));
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const auto all = bytes_of(text);
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), whole) << cut;
  }
}

TEST(Crc32c, TableAndInstruction_Agree) {
  std::string text;
  for (std::size_t length = 0; length < 70; ++length) {
    EXPECT_EQ(~detail::crc32c_by_table(bytes_of(text), ~0U), crc32c(bytes_of(text))) << length;
    text.push_back(static_cast<char>(length * 91 + 5));
  }
}

}  // namespace
}  // namespace headroom
