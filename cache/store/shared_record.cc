// SPDX-License-Identifier: Apache-2.0
#include "cache/store/shared_record.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cache/store/shared_scripts.h"
#include "cache/store/shared_value.h"
#include "common/log.h"

namespace fncache::cache::store {
namespace {

// How often a round starts over because another replica wrote meanwhile.
constexpr int kAttempts = 8;
// A ban reaches at most this far past the server's time: kPurgeAhead past a
// clock that is kClockLimit ahead, and counted as behind before its first look.
// A later one, from a clock that was wrong, would keep new answers out.
constexpr absl::Duration kLatestBan = absl::Seconds(3);
// A server's time counts as at most this far ahead: a hostile one must not
// keep new answers out of memory for ever.
constexpr absl::Duration kMostAhead = absl::Minutes(10);
// A connection has this time at the start, before the log says that the tier is
// down.
constexpr absl::Duration kFirstConnection = absl::Seconds(2);

absl::Status Failure(const resp::Answer& answer) {
  if (answer.outcome != resp::Outcome::kReply) {
    return absl::UnavailableError(answer.why);
  }
  return absl::UnavailableError("the server's reply is of another kind");
}

// A hard ban of everything, as Learn reports it.
Bans::Learned Everything(absl::Time before) {
  Bans::Learned learned;
  learned.all = true;
  learned.hard = true;
  learned.before = before;
  return learned;
}

bool IsOfTime(const resp::Reply& reply, int64_t* value) {
  return reply.kind == resp::Reply::Kind::kText &&
         absl::SimpleAtoi(reply.text, value);
}

}  // namespace

SharedRecord::SharedRecord(Options options)
    : options_(std::move(options)),
      name_(options_.seal->NameOfBans()),
      created_(options_.boottime()) {
  since_ = options_.clock->Now();
  heard_ = absl::ToUnixNanos(since_);
}

// ----------------------------------------------------------------- A round

absl::Status SharedRecord::Sync() {
  // A node that is not up has its own reason.
  const bool up =
      options_.server->NodeOf(name_).state == resp::Node::State::kUp;
  std::vector<Bans::Learned> news;
  absl::Status status;
  {
    MutexLock lock(&sync_mutex_);
    status = Round(&news);
  }
  if (options_.learned != nullptr) {
    for (const Bans::Learned& learned : news) options_.learned(learned);
  }
  {
    MutexLock lock(&state_mutex_);
    failure_ = up ? std::string(status.message()) : "";
  }
  Describe();
  return status;
}

absl::Status SharedRecord::Round(std::vector<Bans::Learned>* news) {
  const absl::Duration began = options_.boottime();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (options_.boottime() - began > kCommandLimit) break;
    Look look;
    absl::Status status = LookAtRecord(&look);
    const absl::Time now = options_.clock->Now();
    if (status.ok() && known_ != look.beginning) {
      status = ReadRecord(look, now, news);
    } else {
      options_.bans->Learn({}, now);  // ends bans of keys
    }
    looked_ = status.ok();
    Heard(look.sent);
    if (!status.ok()) return status;
    const int64_t last = read_.load(std::memory_order_relaxed);
    const absl::Duration absence =
        look.sent - (last == kNever ? created_ : absl::Nanoseconds(last));
    if (absence > kKeyLasts) {
      news->push_back(Everything(now));
    }
    read_.store(absl::ToInt64Nanoseconds(look.sent), std::memory_order_release);

    const uint64_t changes = options_.bans->changes();
    // A purge under a clock that is apart may not reach what others filled.
    if (look.apart && own_ != changes) {
      return absl::UnavailableError(WhyApart());
    }
    if (settled_ == changes) return absl::OkStatus();
    StoredBans all = options_.bans->Shared(now);
    Clamp(absl::ToUnixNanos(LatestBan(look)), &all);
    // Bans of keys that have ended stay there until the next writing.
    absl::erase_if(record_.keys, [now](const auto& of_key) {
      return of_key.second.until <= absl::ToUnixNanos(now);
    });
    if (sound_ && all == record_) {
      settled_ = own_ = changes;
      return absl::OkStatus();
    }
    if (look.apart) return absl::UnavailableError(WhyApart());
    const std::string content = EncodeRecord(*options_.seal, all);
    if (content.empty() || content.size() > kMostBytes) {
      return absl::UnavailableError(
          absl::StrCat("the record of bans would have ", content.size(),
                       " bytes; accepted: 1 to ", kMostBytes));
    }
    if (stopped_) return absl::UnavailableError("the process ends");
    const resp::Answer answer =
        RunScript(options_.server, kRecordScript, name_, {*known_, content});
    if (answer.outcome != resp::Outcome::kReply) return Failure(answer);
    if (answer.reply.integer != 1) {
      // A server that always shows another one keeps this from going on.
      if (!sound_) return absl::UnavailableError("the record does not open");
      continue;
    }
    known_ = content.substr(0, kRecordBeginning);
    record_ = std::move(all);
    sound_ = true;
    settled_ = own_ = changes;
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      "other replicas wrote the record of bans at the same time");
}

void SharedRecord::Heard(absl::Duration began) {
  if (options_.boottime() - began > kSilence) return;
  heard_.store(absl::ToUnixNanos(options_.clock->Now()),
               std::memory_order_release);
}

absl::Status SharedRecord::LookAtRecord(Look* look) {
  look->sent = options_.boottime();
  if (stopped_) return absl::UnavailableError("the process ends");
  const absl::Time before = options_.clock->Now();
  const resp::Answer answer = RunScript(options_.server, kLookScript, name_,
                                        {absl::StrCat(kRecordBeginning)});
  const absl::Duration round_trip = options_.clock->Now() - before;
  if (answer.outcome != resp::Outcome::kReply) return Failure(answer);
  const std::vector<resp::Reply>& elements = answer.reply.elements;
  int64_t seconds = 0;
  int64_t micros = 0;
  if (elements.size() != 3 || elements[0].kind != resp::Reply::Kind::kText ||
      !IsOfTime(elements[1], &seconds) || !IsOfTime(elements[2], &micros)) {
    return Failure(answer);
  }
  // The process was suspended meanwhile.
  if (round_trip > kCommandLimit) {
    return absl::UnavailableError("the reply came too late");
  }
  look->beginning = elements[0].text;
  look->server_time =
      absl::FromUnixSeconds(seconds) + absl::Microseconds(micros);
  const absl::Time here = before + round_trip / 2;
  const absl::Duration difference = here - look->server_time;
  look->apart = absl::AbsDuration(difference) > kClockLimit;
  // A server whose clock is wrong takes no purge back.
  look->latest =
      (look->apart ? std::max(here, look->server_time) : look->server_time) +
      kLatestBan;
  difference_ = absl::ToInt64Nanoseconds(difference);
  round_trip_ = absl::ToInt64Nanoseconds(round_trip);
  apart_ = look->apart;
  return absl::OkStatus();
}

absl::Status SharedRecord::ReadRecord(const Look& look, absl::Time now,
                                      std::vector<Bans::Learned>* news) {
  std::string content;
  if (!look.beginning.empty()) {
    if (stopped_) return absl::UnavailableError("the process ends");
    resp::Answer answer =
        RunCommand(options_.server, name_, {"GET", name_}, kMostBytes);
    if (answer.outcome != resp::Outcome::kReply) return Failure(answer);
    content = std::move(answer.reply.text);
  }
  StoredBans record;
  bool sound = true;
  if (!content.empty()) {
    absl::StatusOr<StoredBans> decoded = DecodeRecord(*options_.seal, content);
    sound = decoded.ok();
    if (decoded.ok()) {
      record = *std::move(decoded);
      sound = !Clamp(absl::ToUnixNanos(LatestBan(look)), &record);
    } else {
      uint64_t unlogged;
      if (unopened_lines_.Allows(now, &unlogged)) {
        Log(LogLevel::kError,
            "the record of bans does not open: all that is stored counts as "
            "purged",
            {{"error", decoded.status().message()}, {"more", unlogged}});
      }
      const absl::Time before = ServerTime(options_.clock->Now()) + kPurgeAhead;
      options_.bans->Ban(Bans::Kind::kAll, "", "", before, /*soft=*/false);
      news->push_back(Everything(before));
    }
  }
  Bans::Learned learned = options_.bans->Learn(record, now);
  if (!learned.empty()) news->push_back(std::move(learned));
  known_ = content.substr(0, kRecordBeginning);
  record_ = std::move(record);
  sound_ = sound;
  settled_ = kUnsettled;
  return absl::OkStatus();
}

// ------------------------------------------------------------------- State

bool SharedRecord::usable() const {
  const int64_t read = read_.load(std::memory_order_acquire);
  return read != kNever && !stopped_ &&
         !apart_.load(std::memory_order_relaxed) &&
         options_.boottime() - absl::Nanoseconds(read) <= kRecordLimit;
}

absl::Time SharedRecord::ServerTime(absl::Time now) const {
  absl::Duration ahead = -absl::Nanoseconds(difference_.load());
  // Until the first round it is unknown.
  if (read_ == kNever) ahead = std::max(ahead, kClockLimit);
  return now + std::clamp(ahead, absl::ZeroDuration(), kMostAhead);
}

std::string SharedRecord::WhyApart() const {
  const absl::Duration difference = absl::Nanoseconds(difference_.load());
  return absl::StrCat(
      "the clock is ", absl::FormatDuration(absl::AbsDuration(difference)),
      difference > absl::ZeroDuration() ? " ahead of" : " behind",
      " the server's; accepted: ", absl::FormatDuration(kClockLimit));
}

SharedRecord::State SharedRecord::Describe() {
  const resp::Node node = options_.server->NodeOf(name_);
  const absl::Duration boottime = options_.boottime();
  State state;
  state.version = node.version;
  state.round_trip = absl::Nanoseconds(round_trip_.load());
  state.clock_difference = absl::Nanoseconds(difference_.load());
  const int64_t read = read_.load(std::memory_order_acquire);
  if (read != kNever) state.bans_age = boottime - absl::Nanoseconds(read);
  state.bans_written = settled_ == options_.bans->changes();

  MutexLock lock(&state_mutex_);
  state.up = node.state == resp::Node::State::kUp && looked_ && usable();
  if (!state.up) {
    if (node.state == resp::Node::State::kDown) {
      state.why = node.why;
    } else if (node.state == resp::Node::State::kConnecting) {
      state.why = "connecting";
    } else if (apart_) {
      state.why = WhyApart();
    } else {
      state.why = failure_.empty() ? "the record of bans was not read lately"
                                   : failure_;
    }
  }
  if (state.up != up_) since_ = options_.clock->Now();
  const bool was_up = up_.exchange(state.up);
  state.since = since_;
  const bool starting =
      read == kNever && boottime - created_ < kFirstConnection;
  const bool failed =
      node.state == resp::Node::State::kDown ||
      (node.state == resp::Node::State::kUp && (apart_ || !failure_.empty()));
  if (stopped_) return state;
  if (!state.up && !logged_ && (was_up || failed || !starting)) {
    logged_ = true;
    Log(LogLevel::kError,
        "the shared tier is down: look-ups miss, fills are dropped, retrying",
        {{"why", state.why}});
  } else if (state.up && !was_up) {
    Log(LogLevel::kInfo, std::exchange(logged_, false)
                             ? "the shared tier is back"
                             : "the shared tier is up");
  }
  return state;
}

}  // namespace fncache::cache::store
