// SPDX-License-Identifier: Apache-2.0
#include "runner/load/pipeline_watcher.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runner/client/rpc_error.h"

namespace fncache::runner::load {

void PipelineWatcher::OnCall(const model::PipelineStart& start,
                             const engine::CallReport& report) {
  if (start.settling && !report.result.status.ok()) {
    NoteFailure(std::string(report.function), report.result.status);
  }
  if (report.result.status.ok()) answered_ = true;
  if (discarding_) return;
  const Outcome outcome = OutcomeOf(report.result.cache_status);
  const absl::Status& status = report.result.status;
  if (!start.settling && Counts(start)) {
    measure_->AddCall(measure_->SeriesOf(report.step, report.function), outcome,
                      absl::ToInt64Nanoseconds(LatencyOf(report)),
                      status.ok() ? CallEnd::kOk
                      : client::NeverReachedAFunction(status)
                          ? CallEnd::kNotReached
                          : CallEnd::kFailed);
    if (!report.result.status.ok()) {
      measure_->AddError(PlainError(report.result.status), [&] {
        return absl::StrCat(
            "step ", report.step, " of ",
            (*simulation_)->NameOf(start.composite), " at ",
            absl::FormatTime("%H:%M:%S", report.started, absl::UTCTimeZone()));
      });
    }
  }
  if (trace_.has_value()) trace_->Add(start, report, outcome, phase_);
}

void PipelineWatcher::OnPipelineEnd(const model::PipelineEnd& end) {
  if (end.start.settling && (end.fatal || end.write_failed)) {
    NoteFailure("", end.status);
  }
  if (discarding_ || end.start.settling || !Counts(end.start)) return;
  measure_->AddPipeline(absl::ToInt64Nanoseconds(end.ended - end.start.due),
                        absl::ToInt64Nanoseconds(end.ended - end.start.started),
                        end.status.ok());
  // Why a call failed has been counted already, under the call.
  if (!end.status.ok() && (end.fatal || end.write_failed)) {
    measure_->AddError(end.status.message(), [&] {
      return absl::StrCat(
          (*simulation_)->NameOf(end.start.composite), " at ",
          absl::FormatTime("%H:%M:%S", end.start.started, absl::UTCTimeZone()));
    });
  }
}

void PipelineWatcher::NoteFailure(std::string function,
                                  const absl::Status& status) {
  const bool cancelled = discarding_;
  MutexLock lock(&failure_mutex_);
  if (cancelled && !failure_.why.empty()) return;
  failure_ = {std::move(function),
              cancelled ? "" : client::PlainRpcError(status)};
}

std::string PipelineWatcher::PlainError(const absl::Status& status) const {
  if (!cancelled_ || !absl::IsCancelled(status)) {
    return client::PlainRpcError(status);
  }
  return absl::StrCat("no answer ", absl::FormatDuration(patience_),
                      " after the run's duration");
}

}  // namespace fncache::runner::load
