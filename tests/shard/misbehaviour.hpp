#pragma once

#include <headroom/parameters.hpp>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "shard/toy_model.hpp"

namespace headroom::test {

/// What one rank, the culprit, does wrong while the others do right, and what every rank is then told.
struct Misbehaviour {
  std::string name;
  std::function<void(Job&, int culprit)> act;
  Fault fault;
  std::string says;            ///< After "(rank R): ".
  bool beside_rank_0 = false;  ///< Nobody knows who is right: the lowest rank that differs from rank 0 is named.

  [[nodiscard]] int named(int culprit) const { return beside_rank_0 && culprit == 0 ? 1 : culprit; }
};

inline std::ostream& operator<<(std::ostream& out, const Misbehaviour& misbehaviour) {
  return out << misbehaviour.name;
}

/// One step over four units, but that this rank visits `forward` and `backward`.
inline void visit(ToyModel& model, const std::vector<int>& forward, const std::vector<int>& backward,
                  const StepOptions& options = {}) {
  StepTransaction step = model.params.begin_step(options);
  for (const int unit : forward) {
    step.forward(unit).finish();
  }
  for (const int unit : backward) {
    step.backward(unit).finish();
  }
  step.commit(*model.adamw);
}

inline Misbehaviour visits(const std::string& name, std::vector<int> forward, std::vector<int> backward,
                           const std::string& says) {
  const auto act = [forward = std::move(forward), backward = std::move(backward)](Job& job, int culprit) {
    ToyModel model(job, {});
    if (job.rank() == culprit) {
      visit(model, forward, backward);
    } else {
      visit(model, {0, 1, 2, 3}, {3, 2, 1, 0});
    }
    model.params.finish();
  };
  return {name, act, Fault::order, says};
}

/// The same where no rank knows the visits beforehand.
inline Misbehaviour strays(const std::string& name, Path kind) {
  const auto act = [kind](Job& job, int culprit) {
    ToyModel model(job, {});
    visit(model, {0, job.rank() == culprit ? 2 : 1, 3}, {3, 0}, {.path = "new", .kind = kind});
    model.params.finish();
  };
  return {name, act, Fault::order, "ranks take different branches", true};
}

inline std::vector<Misbehaviour> misbehaviours() {
  return {
      strays("StraysOnANewPath", Path::fixed),
      strays("StraysOnADynamicPath", Path::dynamic),
      {"StopsAfterLearning",
       [](Job& job, int culprit) {
         ToyModel model(job, {});
         model.path_name = "new";
         for (int i = 0; i < (job.rank() == culprit ? 1 : 3); ++i) {
           model.step();
         }
         model.params.finish();
       },
       Fault::left, "left after step 1"},
      visits("VisitsAnotherUnit", {0, 2, 1, 3}, {3, 2, 1, 0}, "expected forward 1 (micro-batch 0), found forward 2"),
      visits("SkipsAForward", {0, 1, 3}, {3, 2, 1, 0}, "expected forward 2 (micro-batch 0), found forward 3"),
      visits("SkipsABackward", {0, 1, 2, 3}, {3, 1, 0}, "expected backward 2 (micro-batch 0), found backward 1"),
      visits("CommitsEarly", {0, 1, 2, 3}, {3, 2, 1}, "expected backward 0 (micro-batch 0), found commit"),
      visits("VisitsOnceMore", {0, 1, 2, 3}, {3, 2, 1, 0, 0}, "expected the end of the step, found backward 0"),
      visits("CommitsAtOnce", {}, {}, "expected forward 0 (micro-batch 0), found commit"),
      {"StopsEarly",
       [](Job& job, int culprit) {
         ToyModel model(job, {});
         for (int i = 0; i < (job.rank() == culprit ? 2 : 5); ++i) {
           model.step();
         }
         model.params.finish();
       },
       Fault::left, "left after step 2"},
      {"GivesUpTheStep",
       [](Job& job, int culprit) {
         ToyModel model(job, {});
         StepTransaction step = model.params.begin_step();
         step.forward(0).finish();
         if (job.rank() == culprit) {
           step.abort(Fault::bad_input, "a token beyond the vocabulary");
         }
         for (const int unit : {1, 2, 3}) {
           step.forward(unit).finish();
         }
         for (const int unit : {3, 2, 1, 0}) {
           step.backward(unit).finish();
         }
         step.commit(*model.adamw);
       },
       Fault::bad_input, "a token beyond the vocabulary"},
  };
}

}  // namespace headroom::test
