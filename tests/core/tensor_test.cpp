#include <headroom/tensor.hpp>

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(DType, EveryValue_HasItsSizeAndName) {
  EXPECT_EQ(size_of(DType::f32), 4U);
  EXPECT_EQ(size_of(DType::bf16), 2U);
  EXPECT_EQ(size_of(DType::f64), 8U);
  EXPECT_EQ(size_of(DType::i32), 4U);
  EXPECT_EQ(size_of(DType::u8), 1U);
  EXPECT_STREQ(name_of(DType::f32), "f32");
  EXPECT_STREQ(name_of(DType::bf16), "bf16");
  EXPECT_STREQ(name_of(DType::f64), "f64");
  EXPECT_STREQ(name_of(DType::i32), "i32");
  EXPECT_STREQ(name_of(DType::u8), "u8");
}

TEST(TensorView, NumelAndBytes_FollowShapeAndType) {
  TensorView view;
  EXPECT_EQ(view.numel(), 1);
  view.shape = {2, 3, 1, 1};
  view.dtype = DType::bf16;
  EXPECT_EQ(view.numel(), 6);
  EXPECT_EQ(view.bytes(), 12U);
  view.shape[1] = 0;
  EXPECT_EQ(view.bytes(), 0U);
}

TEST(TensorView, Extents_Beyond32Bits_DoNotOverflow) {
  TensorView view;
  view.shape = {70'000, 70'000, 1, 1};
  EXPECT_EQ(view.numel(), 4'900'000'000);
  EXPECT_EQ(view.bytes(), 19'600'000'000U);
}

}  // namespace
}  // namespace headroom
