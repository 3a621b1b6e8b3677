#include "runtime/memory/dependency_set.hpp"

#include <gtest/gtest.h>

namespace headroom::detail {
namespace {

TEST(DependencySet, Add_SameStream_KeepsTheHighestTicket) {
  DependencySet set;
  set.add(3, 7);
  set.add(3, 5);
  set.add(1, 2);
  ASSERT_EQ(set.uses().size(), 2U);
  EXPECT_EQ(set.uses()[0], (StreamUse{1, 2}));
  EXPECT_EQ(set.uses()[1], (StreamUse{3, 7}));
}

TEST(DependencySet, Merge_TwoSets_IsTheMaximumOfBoth) {
  DependencySet a, b;
  a.add(0, 4);
  a.add(2, 9);
  b.add(0, 6);
  b.add(1, 1);
  a.merge(b);
  ASSERT_EQ(a.uses().size(), 3U);
  EXPECT_EQ(a.uses()[0], (StreamUse{0, 6}));
  EXPECT_EQ(a.uses()[1], (StreamUse{1, 1}));
  EXPECT_EQ(a.uses()[2], (StreamUse{2, 9}));
}

TEST(DependencySet, Add_FifthStream_CollapsesAndStaysSo) {
  DependencySet set;
  for (StreamId stream = 0; stream < 4; ++stream) set.add(stream, 1);
  EXPECT_FALSE(set.collapsed());
  set.add(3, 2);
  EXPECT_FALSE(set.collapsed());
  set.add(4, 1);
  EXPECT_TRUE(set.collapsed());
  EXPECT_FALSE(set.empty());
  set.add(0, 5);
  EXPECT_TRUE(set.collapsed());
  DependencySet other;
  other.merge(set);
  EXPECT_TRUE(other.collapsed());
  other.clear();
  EXPECT_TRUE(other.empty());
}

}  // namespace
}  // namespace headroom::detail
