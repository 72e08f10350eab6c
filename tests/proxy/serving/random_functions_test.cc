// SPDX-License-Identifier: Apache-2.0
// Random functions, in simulated time, through the real evidence: how often
// does an entry answer across drift although the function would have given
// another answer? An answer is wrong if the function would not have given it to
// that very request when the entry was filled.
//
// `make nightly` runs 100,000 functions, and 40,000 with each rule and each
// question off alone.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "proxy/serving/evidence.h"
#include "tests/common/long_form.h"

namespace fncache::proxy::serving {
namespace {

// Times are seconds. Versions have seven digits.
constexpr int64_t kStart = 1'800'000'000;
constexpr int64_t kTenYears = 10 * 365 * 86'400;
constexpr int64_t kLowestVersion = 1'000'000;
constexpr int64_t kHighestVersion = 9'999'999;
constexpr int kRequests = 100;
constexpr int kComposites = 2;

uint64_t Mix(uint64_t seed, uint64_t value) {
  uint64_t mixed = (seed ^ value) * 0x9e3779b97f4a7c15u;
  mixed ^= mixed >> 29;
  mixed *= 0xbf58476d1ce4e5b9u;
  return mixed ^ mixed >> 32;
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int Below(int limit) {
    return static_cast<int>(Mix(0, engine_()) % static_cast<uint64_t>(limit));
  }
  bool Chance(double of) { return Below(1'000'000) < of * 1'000'000; }

 private:
  std::minstd_rand engine_;
};

// A request about a composite and its two resources. Drift: a version of each
// resource, and two times of each, under two map keys.
struct Request {
  std::array<int64_t, 4> times{};  // of resource i % 2, under map key i / 2
  std::array<int64_t, 2> versions{};
  std::array<bool, 4> present{true, true, true, true};
  // These values are no drift.
  int composite = 0;
  std::array<int, 2> words{};
  int64_t visible_time = 0;
  int64_t visible_version = 0;

  Key KeyOf() const {
    uint64_t hash = static_cast<uint64_t>(composite);
    for (const bool there : present) hash = Mix(hash, there);
    for (const int word : words) hash = Mix(hash, static_cast<uint64_t>(word));
    hash = Mix(hash, static_cast<uint64_t>(visible_time));
    hash = Mix(hash, static_cast<uint64_t>(visible_version));
    return {Mix(hash, 1), Mix(hash, 2)};
  }

  uint64_t Hash(std::initializer_list<int64_t> values) const {
    uint64_t hash = 7;
    for (const int64_t value : values)
      hash = Mix(hash, static_cast<uint64_t>(value));
    return hash;
  }
  DriftKinds Kinds() const {
    DriftKinds kinds;
    kinds.push_back({1, Hash({versions[0], versions[1]}), /*is_time=*/false});
    for (const int map_key : {0, 1})
      kinds.push_back({static_cast<uint64_t>(2 + map_key),
                       Hash({times[2 * map_key], times[2 * map_key + 1]}),
                       /*is_time=*/true});
    return kinds;
  }
  Key Drift() const {
    const DriftKinds kinds = Kinds();
    uint64_t hash = 0;
    for (size_t i = 0; i < kinds.size(); ++i) hash = Mix(hash, kinds[i].value);
    return {Mix(hash, 1), Mix(hash, 2)};
  }
};

// A test of one or two fields.
struct Condition {
  enum Kind {
    kTimeOlderByClock,
    kTimeBefore,
    kTimeBeforeVisible,
    kTimesEqual,
    kPresent,
    kVersionBelow,
    kVersionBelowVisible,
    kVersionsEqual,
    kWord,
    kKinds
  };

  static Condition Any(Random* random) {
    constexpr int64_t kSpans[] = {0, 5, 60, 600, 3600, 86'400};
    Condition made;
    made.kind = static_cast<Kind>(random->Below(kKinds));
    made.a = random->Below(4);
    made.b = (made.a + 1 + random->Below(3)) % 4;
    made.span = kSpans[random->Below(6)];
    made.word = random->Below(3);
    made.negated = random->Chance(0.5);
    return made;
  }

  bool Holds(const Request& request, int64_t clock) const {
    return Test(request, clock) != negated;
  }

  Kind kind = kWord;
  int a = 0;
  int b = 0;
  int64_t span = 0;
  int word = 0;
  bool negated = false;

 private:
  bool Test(const Request& request, int64_t clock) const {
    // A time that is not there is 0 on both sides of a comparison.
    const int64_t first = request.present[a] ? request.times[a] : 0;
    const int64_t second = request.present[b] ? request.times[b] : 0;
    switch (kind) {
      case kTimeOlderByClock:
        return clock - first > span;
      case kTimeBefore:
        return first < second;
      case kTimeBeforeVisible:
        return first < request.visible_time;
      case kTimesEqual:
        return first == second;
      case kPresent:
        return request.present[a];
      case kVersionBelow:
        return request.versions[a % 2] < request.versions[(a + 1) % 2];
      case kVersionBelowVisible:
        return request.versions[a % 2] < request.visible_version;
      case kVersionsEqual:
        return request.versions[0] == request.versions[1];
      case kWord:
      case kKinds:
        return request.words[a % 2] == word;
    }
    return false;
  }
};

// A function: up to four conditions, joined by and, or, not; and what it
// answers where they hold.
class Function {
 public:
  struct Answer {
    Key digest;
    absl::Duration ttl;
    bool operator==(const Answer& other) const {
      return digest == other.digest && ttl == other.ttl;
    }
  };

  Function(Random* random, int conditions) {
    // One of five answers with a value: that counts as a condition.
    then_ = random->Chance(0.2) ? static_cast<Then>(1 + random->Below(4))
                                : Then::kConstant;
    if (then_ != Then::kConstant && then_ != Then::kTtl) --conditions;
    for (int i = 0; i < conditions; ++i)
      conditions_.push_back(Condition::Any(random));
    field_ = random->Below(4);
    of_version_ = random->Chance(0.3);
    ors_ = random->Below(8);
    pairs_ = random->Chance(0.5);
    ttl_ = absl::Seconds(random->Chance(0.5) ? 60 : 7200);
  }

  Answer Call(const Request& request, int64_t clock) const {
    const bool holds = Hold(request, clock);
    Answer answer{{1, holds ? 1u : 0u}, ttl_};
    if (!holds) return answer;
    switch (then_) {
      case Then::kConstant:
        break;
      case Then::kPass:
        answer.digest.low = static_cast<uint64_t>(
            of_version_               ? request.versions[field_ % 2]
            : request.present[field_] ? request.times[field_]
                                      : 0);
        break;
      case Then::kHash:
        answer.digest = request.Drift();
        break;
      case Then::kCount:
        answer.digest.low = 0;
        for (const int64_t time : request.times)
          answer.digest.low += clock - time > 300 ? 1 : 0;
        break;
      case Then::kTtl:
        answer.digest.low = 0;
        answer.ttl = 2 * ttl_;
        break;
    }
    return answer;
  }

 private:
  enum class Then { kConstant, kPass, kHash, kCount, kTtl };

  bool Hold(const Request& request, int64_t clock) const {
    if (conditions_.empty()) return true;
    const auto join = [this](int i, bool a, bool b) {
      return (ors_ >> i & 1) != 0 ? a || b : a && b;
    };
    std::array<bool, 4> holds{};
    for (size_t i = 0; i < conditions_.size(); ++i)
      holds[i] = conditions_[i].Holds(request, clock);
    if (conditions_.size() == 4 && pairs_)
      return join(1, join(0, holds[0], holds[1]), join(2, holds[2], holds[3]));
    bool all = holds[0];
    for (size_t i = 1; i < conditions_.size(); ++i)
      all = join(static_cast<int>(i) - 1, all, holds[i]);
    return all;
  }

  std::vector<Condition> conditions_;
  Then then_ = Then::kConstant;
  int field_ = 0;
  bool of_version_ = false;
  int ors_ = 0;
  bool pairs_ = false;
  absl::Duration ttl_;
};

// Alters the values as DESIGN's table says. `order` is a random order of them.
template <size_t kSize>
void Alter(int question, int64_t lowest, int64_t highest,
           const std::array<int, kSize>& order,
           std::array<int64_t, kSize>* values) {
  constexpr int64_t kLast = kSize - 1;
  for (size_t i = 0; i < kSize; ++i) {
    const int64_t rank = question == 3 ? order[i] : kLast - order[i];
    (*values)[i] = question == 1   ? lowest
                   : question == 2 ? highest
                                   : lowest + (highest - lowest) * rank / kLast;
  }
}

// The rules that are off: those of the evidence, and these.
struct Off {
  Evidence::Rules rules;
  bool steps = false;               // each key is a step of its own
  std::array<bool, 5> questions{};  // [n]: question n counts as the same
};

struct Totals {
  int64_t calls = 0;
  int64_t runs = 0;
  int64_t hits_across_drift = 0;
  int64_t questions = 0;
  int64_t wrong = 0;
  int64_t functions = 0;
  int64_t wrong_functions = 0;
};

// One function, its entries and its traffic.
class Simulation {
 public:
  Simulation(uint64_t seed, int conditions, const Off& off)
      : random_(seed),
        function_(&random_, conditions),
        off_(off),
        evidence_(off.rules) {
    constexpr double kRates[] = {0, 0.03, 0.3, 0.7, 1};
    for (double& rate : rates_) rate = kRates[random_.Below(5)];
    visible_rate_ = std::array<double, 3>{0, 0.02, 0.1}[random_.Below(3)];
    together_ = random_.Chance(0.3);
    for (int i = 0; i < kComposites; ++i) {
      Request& request = composites_[i];
      request.composite = i;
      for (int64_t& time : request.times)
        time = kStart - random_.Below(random_.Chance(0.5) ? 100 : 100'000);
      for (int64_t& version : request.versions)
        version = revision_ - random_.Below(1'000'000);
      for (bool& there : request.present) there = random_.Chance(0.9);
      for (int64_t& time : request.times)
        if (!request.present[&time - request.times.data()]) time = 0;
      for (int& word : request.words) word = random_.Below(3);
      request.visible_time = kStart - 1000 + random_.Below(5000);
      request.visible_version =
          revision_ - 1'000'000 + random_.Below(3'000'000);
    }
  }

  void Run(Totals* totals) {
    const int64_t wrong_before = totals->wrong;
    for (int i = 0; i < kRequests; ++i) {
      now_ += 1 + random_.Below(120);
      Request& request = composites_[random_.Below(kComposites)];
      Tick(&request);
      Call(request, totals);
    }
    ++totals->functions;
    totals->wrong_functions += totals->wrong > wrong_before;
  }

 private:
  struct Entry {
    TunedEntry tuned;
    Function::Answer answer;
    int64_t clock = 0;
  };

  static absl::Time TimeOf(int64_t clock) {
    return absl::FromUnixSeconds(clock);
  }

  void Tick(Request* request) {
    const bool all_now = together_ && random_.Chance(0.5);
    revision_ += 1 + random_.Below(10'000);
    for (int i = 0; i < 4; ++i) {
      if (!request->present[i] || !random_.Chance(rates_[i])) continue;
      request->times[i] = now_ - (all_now ? 0 : random_.Below(30));
    }
    // One counter gives all versions, as in a cluster. Sometimes two are equal.
    for (int i = 0; i < 2; ++i) {
      if (!random_.Chance(rates_[4 + i])) continue;
      if (!all_now) revision_ += 1 + random_.Below(10'000);
      request->versions[i] = revision_;
    }
    for (int& word : request->words)
      if (random_.Chance(visible_rate_)) word = random_.Below(3);
  }

  void Call(const Request& request, Totals* totals) {
    ++totals->calls;
    const Key key = request.KeyOf();
    const Key drift = request.Drift();
    const DriftKinds kinds = request.Kinds();
    const auto found = entries_.find(key);
    if (found != entries_.end()) {
      const Entry& entry = found->second;
      const bool fresh = TimeOf(now_) < entry.tuned.started + entry.tuned.ttl;
      if (fresh && entry.tuned.drift == drift) return;
      if (fresh && evidence_
                           .Judge(key, entry.tuned.started, entry.tuned.drift,
                                  kinds, TimeOf(now_))
                           .verdict == DriftVerdict::kHit) {
        evidence_.OnHit(key, kinds);
        ++totals->hits_across_drift;
        if (!(function_.Call(request, entry.clock) == entry.answer))
          ++totals->wrong;
        return;
      }
    }
    ++totals->runs;
    Entry entry;
    entry.answer = function_.Call(request, now_);
    entry.clock = now_;
    entry.tuned = {TimeOf(now_), drift, entry.answer.digest, entry.answer.ttl};
    absl::optional<TunedEntry> older;
    if (found != entries_.end()) older = found->second.tuned;
    entries_[key] = entry;
    TunedRun run;
    run.step = off_.steps ? key : Key{1, 1};
    run.key = key;
    run.entry = entry.tuned;
    run.kinds = &kinds;
    const RunNote note = evidence_.OnRun(
        run, older.has_value() ? &*older : nullptr, TimeOf(now_));
    if (note.questions_due) Prove(request, entry.answer, totals);
  }

  void Prove(const Request& request, const Function::Answer& answer,
             Totals* totals) {
    // A fleet of two composites would have to save up for each proof.
    auto running = evidence_.Begin(request.KeyOf(), 1, TimeOf(now_));
    ASSERT_TRUE(running.has_value());
    std::array<int, 4> times{0, 1, 2, 3};
    std::array<int, 2> versions{0, 1};
    Shuffle(&times);
    Shuffle(&versions);
    while (evidence_.Take(&*running, TimeOf(now_))) {
      ++totals->questions;
      const Question question = running->proof.next();
      Request altered = request;
      if (question.number > 0) {
        if (!question.versions_alone)
          Alter(question.number, now_ - kTenYears, now_ + kTenYears, times,
                &altered.times);
        Alter(question.number, kLowestVersion, kHighestVersion, versions,
              &altered.versions);
        for (int i = 0; i < 4; ++i)
          if (!request.present[i]) altered.times[i] = 0;
      }
      const bool same = off_.questions[question.number] ||
                        function_.Call(altered, now_) == answer;
      evidence_.Report(&*running, same ? Answered::kSame : Answered::kDiffers,
                       TimeOf(now_));
    }
  }

  template <size_t kSize>
  void Shuffle(std::array<int, kSize>* order) {
    for (size_t i = kSize - 1; i > 0; --i)
      std::swap((*order)[i], (*order)[random_.Below(static_cast<int>(i) + 1)]);
  }

  Random random_;
  Function function_;
  Off off_;
  Evidence evidence_;
  std::array<Request, kComposites> composites_;
  std::array<double, 6> rates_;
  double visible_rate_ = 0;
  bool together_ = false;
  int64_t now_ = kStart;
  int64_t revision_ = 4'000'000;
  absl::flat_hash_map<Key, Entry> entries_;
};

// Functions of one condition, or of one to four.
Totals RunAll(int functions, int most_conditions, const Off& off) {
  Totals totals;
  for (int i = 0; i < functions; ++i) {
    const int conditions = 1 + i % most_conditions;
    Simulation(static_cast<uint64_t>(i) * 7919 + 1, conditions, off)
        .Run(&totals);
  }
  return totals;
}

double Percent(int64_t some, int64_t all) {
  return 100.0 * static_cast<double>(some) / static_cast<double>(all);
}

void Print(const std::string& name, int conditions, const Totals& totals) {
  std::printf(
      "%-22s conditions <= %d: hits across drift %5.2f %%, questions %5.2f %% "
      "of calls, wrong: %6ld calls (%.4f %%), %ld functions (%.2f %%)\n",
      name.c_str(), conditions, Percent(totals.hits_across_drift, totals.calls),
      Percent(totals.questions, totals.calls), static_cast<long>(totals.wrong),
      Percent(totals.wrong, totals.calls),
      static_cast<long>(totals.wrong_functions),
      Percent(totals.wrong_functions, totals.functions));
}

const int kFunctions =
    testing::FewerSanitized(testing::ShortOrLong(10'000, 100'000));

TEST(RandomFunctions, OfOneConditionAreNeverWrong) {
  const Totals totals = RunAll(kFunctions, 1, Off());
  Print("all rules", 1, totals);
  EXPECT_EQ(totals.wrong, 0);
  EXPECT_GT(Percent(totals.hits_across_drift, totals.calls), 5);
}

TEST(RandomFunctions, OfUpToFourConditionsAreWrongInFewCalls) {
  const Totals totals = RunAll(kFunctions, 4, Off());
  Print("all rules", 4, totals);
  EXPECT_LE(Percent(totals.wrong, totals.calls), 0.05);
  EXPECT_GT(Percent(totals.hits_across_drift, totals.calls), 5);
}

TEST(RandomFunctions, WithoutQuestionsAreWrong) {
  Off off;
  off.questions.fill(true);
  const Totals totals = RunAll(kFunctions / 10, 1, off);
  Print("without questions", 1, totals);
  EXPECT_GT(totals.wrong_functions, 0);
}

// Prints a table of what each rule and each question is for. The long form also
// checks that there are more wrong answers without each question, and where
// each key is a step of its own.
TEST(RandomFunctions, HeavyWithOneRuleOff) {
  const int functions =
      testing::FewerSanitized(testing::ShortOrLong(1'000, 40'000));
  struct Variant {
    std::string name;
    Off off;
  };
  std::vector<Variant> variants{{"all rules", {}}};
  const auto add = [&variants](const std::string& name) {
    variants.push_back({name, {}});
    return &variants.back().off;
  };
  add("two drifts")->rules.drifts = 2;
  add("no ticking")->rules.ticking = false;
  add("not recent")->rules.recent = false;
  add("each key for itself")->steps = true;
  for (const int question : {1, 2, 3, 4})
    add("no question " + std::to_string(question))->questions[question] = true;
  add("no questions")->questions.fill(true);
  absl::flat_hash_map<std::string, int64_t> wrong;
  for (const int conditions : {1, 4}) {
    for (const Variant& variant : variants) {
      const Totals totals = RunAll(functions, conditions, variant.off);
      Print(variant.name, conditions, totals);
      wrong[variant.name] = totals.wrong;
    }
  }
  EXPECT_GT(wrong["no questions"], 10 * wrong["all rules"]);
  if (functions < 40'000) return;
  EXPECT_GT(wrong["each key for itself"], wrong["all rules"]);
  for (const int question : {1, 2, 3, 4})
    EXPECT_GT(wrong["no question " + std::to_string(question)],
              wrong["all rules"]);
}

}  // namespace
}  // namespace fncache::proxy::serving
