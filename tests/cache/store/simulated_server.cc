// SPDX-License-Identifier: Apache-2.0
#include "tests/cache/store/simulated_server.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cache/store/shared_scripts.h"
#include "common/mutex.h"

namespace fncache::cache::store::testing {
namespace {

using resp::Answer;
using resp::Outcome;
using resp::Reply;

Answer Replied(Reply reply) { return {Outcome::kReply, std::move(reply), ""}; }

Answer Integer(int64_t integer) {
  Reply reply;
  reply.kind = Reply::Kind::kInteger;
  reply.integer = integer;
  return Replied(std::move(reply));
}

Reply Text(std::string text) {
  Reply reply;
  reply.kind = Reply::Kind::kText;
  reply.text = std::move(text);
  return reply;
}

Answer Failed(Outcome outcome, absl::string_view why) {
  return {outcome, {}, std::string(why)};
}

Answer Error(absl::string_view why) { return Failed(Outcome::kError, why); }

// An integer as Redis's string2ll reads it: no sign but a minus, no zero
// before.
bool ReadInteger(absl::string_view text, int64_t* integer) {
  return absl::SimpleAtoi(text, integer) && absl::StrCat(*integer) == text;
}

// GETRANGE: both ends belong to it, and negative ones count from the end.
std::string Range(const std::string& bytes, int64_t first, int64_t last) {
  const auto size = static_cast<int64_t>(bytes.size());
  if (first < 0 && last < 0 && first > last) return "";
  if (first < 0) first = std::max<int64_t>(size + first, 0);
  if (last < 0) last = std::max<int64_t>(size + last, 0);
  last = std::min(last, size - 1);
  if (first > last || size == 0) return "";
  return bytes.substr(first, last - first + 1);
}

// A clear header: 1 and 20 digits.
bool IsClearHeader(absl::string_view there) {
  return there.size() == 21 && there[0] == '1' &&
         std::all_of(there.begin(), there.end(), absl::ascii_isdigit);
}

// The bytes of a reply in memory, about.
size_t SizeOf(const Reply& reply) {
  size_t size = reply.text.size();
  for (const Reply& element : reply.elements) size += SizeOf(element);
  return size;
}

}  // namespace

struct SimulatedServer::State {
  explicit State(Clock* clock) : clock(clock) {}

  int64_t NowMs() const { return absl::ToUnixMillis(clock->Now()); }

  const Value* Find(absl::string_view name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto it = values.find(std::string(name));
    if (it == values.end()) return nullptr;
    const Value& value = it->second;
    return value.ends.has_value() && NowMs() > *value.ends ? nullptr : &value;
  }
  std::string Get(absl::string_view name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const Value* const value = Find(name);
    return value == nullptr ? "" : value->bytes;
  }
  bool Delete(absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const bool there = Find(name) != nullptr;
    values.erase(std::string(name));
    return there;
  }
  void Set(absl::string_view name, Value value)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::vector<Value>& earlier = history[std::string(name)];
    if (earlier.size() == kHistory) earlier.erase(earlier.begin());
    earlier.push_back(value);
    values[std::string(name)] = std::move(value);
  }

  Answer Execute(const std::vector<absl::string_view>& words)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  Answer Eval(absl::string_view script, absl::string_view key,
              const std::vector<absl::string_view>& arguments)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  Answer Fill(absl::string_view key,
              const std::vector<absl::string_view>& arguments)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  Answer Erase(absl::string_view key,
               const std::vector<absl::string_view>& arguments)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // SET with PX.
  Answer SetFor(absl::string_view key, absl::string_view bytes,
                absl::string_view time_left)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Whether the script returns 0: what is there started later than `header`, or
  // the command comes too late.
  bool StaysThere(absl::string_view key, absl::string_view header,
                  absl::string_view latest, Defect defect)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const int64_t now = absl::ToUnixMicros(clock->Now());
    if (absl::StrFormat("1%017d000", now) > latest) return true;
    const std::string there = Range(Get(key), 0, 20);
    return IsClearHeader(there) && there > header && there <= latest &&
           this->defect != defect;
  }

  Clock* const clock;
  Hooks hooks;
  Defect defect = Defect::kNone;

  Mutex mutex;
  Copy values ABSL_GUARDED_BY(mutex);
  std::map<std::string, std::vector<Value>> history ABSL_GUARDED_BY(mutex);
  std::vector<std::vector<std::string>> late ABSL_GUARDED_BY(mutex);
  std::set<int> cut_off ABSL_GUARDED_BY(mutex);
  bool up ABSL_GUARDED_BY(mutex) = true;
  bool full ABSL_GUARDED_BY(mutex) = false;
  uint64_t broken ABSL_GUARDED_BY(mutex) = 0;
};

Answer SimulatedServer::State::Execute(
    const std::vector<absl::string_view>& words) {
  const auto is = [&words](absl::string_view name, size_t size) {
    return words.size() == size && words[0] == name;
  };
  if (is("GET", 2)) {
    const Value* const value = Find(words[1]);
    return Replied(value == nullptr ? Reply() : Text(value->bytes));
  }
  if (is("DEL", 2)) return Integer(Delete(words[1]));
  if (words.size() >= 4 && words[0] == "EVAL" && words[2] == "1") {
    return Eval(words[1], words[3], {words.begin() + 4, words.end()});
  }
  return Error("ERR the simulated server does not know this command");
}

Answer SimulatedServer::State::Eval(
    absl::string_view script, absl::string_view key,
    const std::vector<absl::string_view>& arguments) {
  if (script == kFillScript && arguments.size() == 3) {
    return Fill(key, arguments);
  }
  if (script == kEraseScript && arguments.size() == 3) {
    return Erase(key, arguments);
  }
  if (script == kRejectScript && arguments.size() == 1) {
    const absl::string_view begin = arguments[0];
    if (Range(Get(key), 0, static_cast<int64_t>(begin.size()) - 1) != begin) {
      return Integer(0);
    }
    return Integer(Delete(key));
  }
  if (script == kLookScript && arguments.size() == 1) {
    int64_t size = 0;
    if (!ReadInteger(arguments[0], &size)) {
      return Error("ERR user_script:3: attempt to perform arithmetic");
    }
    const int64_t now = absl::ToUnixMicros(clock->Now());
    Reply reply;
    reply.kind = Reply::Kind::kArray;
    reply.elements = {Text(Range(Get(key), 0, size - 1)),
                      Text(absl::StrCat(now / 1'000'000)),
                      Text(absl::StrCat(now % 1'000'000))};
    return Replied(std::move(reply));
  }
  if (script == kRecordScript && arguments.size() == 2) {
    const absl::string_view begin = arguments[0];
    const auto size = static_cast<int64_t>(std::max<size_t>(begin.size(), 1));
    if (Range(Get(key), 0, size - 1) != begin &&
        defect != Defect::kWritesAnyRecord) {
      return Integer(0);
    }
    if (full) return Error("OOM command not allowed");
    Set(key, {std::string(arguments[1]), absl::nullopt});
    return Integer(1);
  }
  return Error("ERR the simulated server does not know this script");
}

Answer SimulatedServer::State::Fill(
    absl::string_view key, const std::vector<absl::string_view>& arguments) {
  if (StaysThere(key, arguments[0].substr(0, 21), arguments[1],
                 Defect::kFillsOverLater)) {
    return Integer(0);
  }
  Answer set = SetFor(key, arguments[0], arguments[2]);
  return set.outcome == Outcome::kReply ? Integer(1) : set;
}

Answer SimulatedServer::State::Erase(
    absl::string_view key, const std::vector<absl::string_view>& arguments) {
  if (StaysThere(key, arguments[0].substr(0, 21), arguments[1],
                 Defect::kErasesLater)) {
    return Integer(0);
  }
  if (!Get(key).empty() &&
      SetFor(key, arguments[0], arguments[2]).outcome != Outcome::kReply) {
    Delete(key);
  }
  return Integer(1);
}

Answer SimulatedServer::State::SetFor(absl::string_view key,
                                      absl::string_view bytes,
                                      absl::string_view time_left) {
  if (full) return Error("OOM command not allowed");
  int64_t left = 0;
  if (!ReadInteger(time_left, &left)) {
    return Error("ERR value is not an integer or out of range");
  }
  const int64_t now = NowMs();
  if (left <= 0 || left > std::numeric_limits<int64_t>::max() - now) {
    return Error("ERR invalid expire time in 'set' command");
  }
  Value value{std::string(bytes), now + left};
  if (defect == Defect::kNeverEnds) value.ends.reset();
  Set(key, std::move(value));
  return Integer(1);
}

// ------------------------------------------------------------------ Clients

class SimulatedServer::Client final : public resp::Server {
 public:
  Client(std::shared_ptr<State> state, int replica)
      : state_(std::move(state)), replica_(replica) {}

  Answer Run(const resp::Command& command) override {
    const Hooks& hooks = state_->hooks;
    Fault fault = Fault::kNone;
    if (hooks.before) fault = hooks.before(replica_, command);
    Answer answer;
    {
      MutexLock lock(&state_->mutex);
      if (!up()) return Failed(Outcome::kDown, "connection refused");
      switch (fault) {
        case Fault::kLost:
          return Failed(Outcome::kTimeout, "no reply in time");
        case Fault::kLate:
          state_->late.emplace_back(command.words.begin(), command.words.end());
          return Failed(Outcome::kTimeout, "no reply in time");
        case Fault::kClosed:
          return Failed(Outcome::kBroken, "connection reset by peer");
        case Fault::kDown:
          return Failed(Outcome::kDown, "LOADING the dataset in memory");
        case Fault::kError:
          return Error("ERR simulated");
        case Fault::kNone:
        case Fault::kNoReply:
        case Fault::kClosedAfter:
          break;
      }
      answer = state_->Execute(command.words);
      if (SizeOf(answer.reply) > command.max_reply_bytes) {
        ++state_->broken;
        answer = Failed(Outcome::kBroken, "the reply is too large");
      }
    }
    if (hooks.after) hooks.after(replica_, command);
    if (fault == Fault::kNoReply) {
      return Failed(Outcome::kTimeout, "no reply in time");
    }
    if (fault == Fault::kClosedAfter) {
      return Failed(Outcome::kBroken, "connection reset by peer");
    }
    return answer;
  }

  resp::Node NodeOf(absl::string_view) const override {
    MutexLock lock(&state_->mutex);
    return node();
  }
  resp::ServerFigures figures() const override {
    MutexLock lock(&state_->mutex);
    resp::ServerFigures figures;
    figures.nodes = {node()};
    figures.broken = state_->broken;
    return figures;
  }

 private:
  bool up() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mutex) {
    return state_->up && state_->cut_off.count(replica_) == 0;
  }
  resp::Node node() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mutex) {
    resp::Node node;
    node.address = "simulated:6379";
    node.state = up() ? resp::Node::State::kUp : resp::Node::State::kDown;
    if (!up()) node.why = "connection refused";
    node.version = "7.0.15";
    node.role = "master";
    return node;
  }

  const std::shared_ptr<State> state_;
  const int replica_;
};

// ------------------------------------------------------------------- Server

SimulatedServer::SimulatedServer(Clock* clock)
    : state_(std::make_shared<State>(clock)) {}

SimulatedServer::~SimulatedServer() = default;

std::unique_ptr<resp::Server> SimulatedServer::Connect(int replica) {
  return std::make_unique<Client>(state_, replica);
}

void SimulatedServer::SetHooks(Hooks hooks) {
  state_->hooks = std::move(hooks);
}

void SimulatedServer::SetDefect(Defect defect) { state_->defect = defect; }

void SimulatedServer::SetReachable(int replica, bool reachable) {
  MutexLock lock(&state_->mutex);
  if (reachable) {
    state_->cut_off.erase(replica);
  } else {
    state_->cut_off.insert(replica);
  }
}

void SimulatedServer::SetUp(bool up) {
  MutexLock lock(&state_->mutex);
  state_->up = up;
}

void SimulatedServer::SetFull(bool full) {
  MutexLock lock(&state_->mutex);
  state_->full = full;
}

size_t SimulatedServer::DeliverLate() {
  MutexLock lock(&state_->mutex);
  const auto late = std::exchange(state_->late, {});
  for (const std::vector<std::string>& words : late) {
    state_->Execute({words.begin(), words.end()});
  }
  return late.size();
}

void SimulatedServer::DropLate() {
  MutexLock lock(&state_->mutex);
  state_->late.clear();
}

void SimulatedServer::Clear() { Promote({}); }

bool SimulatedServer::Evict(absl::string_view name) {
  MutexLock lock(&state_->mutex);
  return state_->Delete(name);
}

SimulatedServer::Copy SimulatedServer::Take() const {
  MutexLock lock(&state_->mutex);
  return state_->values;
}

void SimulatedServer::Promote(Copy copy) {
  MutexLock lock(&state_->mutex);
  state_->values = std::move(copy);
}

std::vector<std::string> SimulatedServer::Names() const {
  MutexLock lock(&state_->mutex);
  std::vector<std::string> names;
  for (const auto& [name, value] : state_->values) {
    if (state_->Find(name) != nullptr) names.push_back(name);
  }
  return names;
}

absl::optional<SimulatedServer::Value> SimulatedServer::Read(
    absl::string_view name) const {
  MutexLock lock(&state_->mutex);
  const Value* const value = state_->Find(name);
  if (value == nullptr) return absl::nullopt;
  return *value;
}

void SimulatedServer::Write(absl::string_view name, Value value) {
  MutexLock lock(&state_->mutex);
  state_->values[std::string(name)] = std::move(value);
}

std::vector<SimulatedServer::Value> SimulatedServer::History(
    absl::string_view name) const {
  MutexLock lock(&state_->mutex);
  const auto it = state_->history.find(std::string(name));
  return it == state_->history.end() ? std::vector<Value>() : it->second;
}

bool SimulatedServer::Meddle(
    std::mt19937* random, const std::function<bool(const std::string&)>& may) {
  std::vector<std::string> names = Names();
  names.erase(std::remove_if(names.begin(), names.end(),
                             [&may](const auto& name) { return !may(name); }),
              names.end());
  if (names.empty()) return false;
  const auto draw = [random](size_t n) { return (*random)() % n; };
  const std::string& name = names[draw(names.size())];
  absl::optional<Value> value = Read(name);
  if (!value.has_value() || value->bytes.empty()) return false;
  std::string& bytes = value->bytes;
  switch (draw(5)) {
    case 0: {
      const std::string& other = names[draw(names.size())];
      const absl::optional<Value> another = Read(other);
      if (other == name || !another.has_value()) return false;
      Write(other, *value);
      Write(name, *another);
      return true;
    }
    case 1:
      bytes[draw(bytes.size())] ^= static_cast<char>(1 << draw(8));
      break;
    case 2:
      bytes.resize(draw(bytes.size()));
      break;
    case 3: {  // a later start, within what still counts
      const size_t digit = 5 + draw(8);
      if (bytes.size() <= digit || bytes[digit] >= '9') return false;
      ++bytes[digit];
      break;
    }
    default: {
      const std::vector<Value> earlier = History(name);
      if (earlier.empty()) return false;
      value = earlier[draw(earlier.size())];
      value->ends.reset();
      break;
    }
  }
  Write(name, *std::move(value));
  return true;
}

SimulatedServer::Fault DrawFault(const FaultRates& rates,
                                 std::mt19937* random) {
  using Fault = SimulatedServer::Fault;
  auto dice = static_cast<int>((*random)() % 1000);
  const std::pair<int, Fault> faults[] = {
      {rates.lost, Fault::kLost},   {rates.no_reply, Fault::kNoReply},
      {rates.late, Fault::kLate},   {rates.closed, Fault::kClosed},
      {rates.down, Fault::kDown},   {rates.closed_after, Fault::kClosedAfter},
      {rates.error, Fault::kError},
  };
  for (const auto& [rate, fault] : faults) {
    if (dice < rate) return fault;
    dice -= rate;
  }
  return Fault::kNone;
}

}  // namespace fncache::cache::store::testing
