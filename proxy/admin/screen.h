// SPDX-License-Identifier: Apache-2.0
// Screen: shows one picture after the other on a terminal. The wait for the
// next picture ends early on input of the user.
//
// It uses the alternate screen, so the earlier text is back at the end. Each
// picture is one write that clears no text that stays, so nothing flickers.
// Before a signal ends or stops the process, the terminal is restored. These
// signals are blocked in this thread, and in threads that it starts, while a
// Screen exists. Make it before other threads.
//
// Not thread-safe; one in a process.
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
  // Null if standard input or output is no terminal, or the terminal has no
  // control sequences (TERM=dumb).
  static std::unique_ptr<Screen> Open();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  struct Size {
    size_t columns = 80;
    size_t rows = 24;
  };
  Size size() const;

  // Shows these lines, cut to the size. Lines that begin with "! " are
  // highlighted.
  void Show(absl::string_view text);

  enum class Event {
    kTime,    // the time has passed
    kWoken,   // `waker` can be read
    kResize,  // show the picture again
    kQuit,    // q, or a signal
  };
  // `waker` is a descriptor, or -1.
  Event Wait(absl::Duration time, int waker = -1);
  // The signal that ended the wait; 0 if it was none.
  int signal() const { return signal_; }

 private:
  Screen(int signals, const termios& before, const sigset_t& mask);
  void Enter();
  void Leave();
  // On SIGTSTP: restores the terminal until the process continues.
  void Suspend();

  const int signals_;  // signalfd
  const termios before_;
  const sigset_t mask_;  // the mask before
  int signal_ = 0;
  const bool color_;
};

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_SCREEN_H_
