// SPDX-License-Identifier: Apache-2.0
// Screen: a terminal that is shown one picture after the other, and a wait for
// the next one that ends early where the user wants something.
//
// It uses the alternate screen, so that what stood there is back at the end;
// each picture is one write that never clears what stays, so that nothing
// flickers. Signals that would end or stop the process restore the terminal
// first: they are blocked in this thread, and in threads that it starts, for as
// long as there is a Screen. Make it before other threads.
//
// Not thread-safe; one a process.
#ifndef FNCACHE_PROXY_ADMIN_SCREEN_H_
#define FNCACHE_PROXY_ADMIN_SCREEN_H_

#include <signal.h>
#include <termios.h>

#include <cstddef>
#include <memory>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fncache::proxy::admin {

class Screen {
 public:
  // Null if standard input and output are no terminal, or one that cannot do
  // this (TERM=dumb).
  static std::unique_ptr<Screen> Open();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  struct Size {
    size_t columns = 80;
    size_t rows = 24;
  };
  Size size() const;

  // Shows these lines, cut to the size; those that begin with "! " stand out.
  void Show(absl::string_view text);

  enum class Event {
    kTime,    // all of it has passed
    kWoken,   // there is something to read from `waker`
    kResize,  // show it again
    kQuit,    // q, or a signal
  };
  // `waker` is a descriptor, or -1.
  Event Wait(absl::Duration time, int waker = -1);
  // The signal that ended it; 0 where it was none.
  int signal() const { return signal_; }

 private:
  Screen(int signals, const termios& before, const sigset_t& mask);
  void Enter();
  void Leave();
  // On SIGTSTP: gives the terminal back until the process goes on.
  void Suspend();

  const int signals_;  // signalfd
  const termios before_;
  const sigset_t mask_;  // as it was
  int signal_ = 0;
  const bool color_;
};

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_SCREEN_H_
