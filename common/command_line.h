// SPDX-License-Identifier: Apache-2.0
// The command line of a program or of one of its commands: defines options,
// parses arguments into variables and prints the help.
//
// This is a compile firewall. CLI11 costs about 10 s of compile time for each
// file that includes it, so command_line.cc alone does (scripts/modules checks
// that). No type and no exception of CLI11 crosses this interface.
//
//   std::string listen = "127.0.0.1:9443";
//   CommandLine line("Serves calls.", "fncache example");
//   line.AddOption("-l,--listen", &listen, "Where callers connect")
//       .TypeName("ADDR")
//       .ShowDefault();
//   if (const auto code = line.ParseForMain(argc, argv)) return *code;
//
// Ownership and lifetime: a CommandLine owns its options and commands. Handles
// and pointers to them are valid until it is destroyed, also if it is moved. A
// target of AddOption or AddFlag belongs to the caller and must outlive the
// last Parse, which writes the targets of the options that were given.
//
// Thread-safety: const functions may run on several threads at the same time,
// other functions need exclusive access. Separate objects are independent.
//
// Errors: wrong arguments are Outcome::kError. A definition that cannot be used
// (a name twice, a name that does not exist) ends the process, as it is a bug.
#ifndef FNCACHE_COMMON_COMMAND_LINE_H_
#define FNCACHE_COMMON_COMMAND_LINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "common/command_flags.h"

namespace fncache {

class CommandLine {
 public:
  enum class Outcome {
    kParsed,  // the targets are written
    kHelp,    // -h or --help was given: print Help()
    kError,   // error() says why
  };

  // A handle to a definition, cheap to copy. Setters return the handle, so that
  // calls can be chained.
  class Option {
   public:
    Option() = default;  // refers to no option; assign to it before use

    // The placeholder of the value in the help, "FILE". The default is the type
    // of the target, such as INT.
    Option TypeName(const std::string& name) const noexcept;
    // Shows the current value of the target as the default in the help.
    Option ShowDefault() const noexcept;
    // Lists the option below this heading of the help.
    Option Group(const std::string& heading) const noexcept;

    Option Required() const noexcept;
    // Accepts from `min` to `max` values, both included.
    Option Expected(int min, int max) const noexcept;
    // For a list: may be given several times, with one value each.
    Option Repeats() const noexcept;
    // As Repeats, but each time takes all values up to the next option.
    Option RepeatsWithLists() const noexcept;

    // Checks of each value, in the order of these calls. The help names the
    // range of the first two.
    Option Range(int min, int max) const noexcept;  // both included
    Option Positive() const noexcept;
    Option OneOf(const std::vector<std::string>& values) const noexcept;
    // `why_not` returns why it refuses a text; empty = it accepts it.
    Option Check(
        std::function<std::string(const std::string&)> why_not) const noexcept;

    // Whether the last Parse saw the option.
    bool given() const noexcept;
    // The texts that the last Parse saw, in their order.
    std::vector<std::string> results() const noexcept;
    // With dashes and the long one if there are several: "--listen"; the name
    // in the usage for a positional argument.
    std::string name() const noexcept;
    // The placeholder of the value; empty for a flag.
    std::string argument() const noexcept;

    friend bool operator==(Option a, Option b) noexcept {
      return a.definition_ == b.definition_;
    }
    friend bool operator!=(Option a, Option b) noexcept { return !(a == b); }

   private:
    friend class CommandLine;
    struct Definition;
    explicit Option(Definition* definition) : definition_(definition) {}

    Definition* definition_ = nullptr;
  };

  // Defines -h,--help too. `purpose` opens the help; `name`, such as "fncache
  // load", stands in its usage line, and is argv[0] if empty.
  explicit CommandLine(const std::string& purpose = "",
                       const std::string& name = "") noexcept;
  CommandLine(CommandLine&&) noexcept;
  CommandLine& operator=(CommandLine&&) noexcept;
  ~CommandLine();

  // `names` are separated by commas, "-l,--listen"; a name without dashes is a
  // positional argument. `help` is one or more sentences. A list takes all
  // values up to the next option; see Repeats.
  Option AddOption(const std::string& names, std::string* target,
                   const std::string& help = "") noexcept;
  Option AddOption(const std::string& names, std::vector<std::string>* target,
                   const std::string& help = "") noexcept;
  Option AddOption(const std::string& names, int* target,
                   const std::string& help = "") noexcept;
  Option AddOption(const std::string& names, uint32_t* target,
                   const std::string& help = "") noexcept;
  Option AddOption(const std::string& names, uint64_t* target,
                   const std::string& help = "") noexcept;
  Option AddOption(const std::string& names, double* target,
                   const std::string& help = "") noexcept;
  // As with a list, which Parse passes to `take` if the option was given.
  Option AddOption(const std::string& names,
                   std::function<void(const std::vector<std::string>&)> take,
                   const std::string& help = "") noexcept;

  Option AddFlag(const std::string& names, bool* target,
                 const std::string& help = "") noexcept;
  // Parse passes the number of times that the flag was given to `take`, if it
  // was. `--flag=false` counts as -1, and `--flag=N` as N.
  Option AddFlag(const std::string& names, std::function<void(int64_t)> take,
                 const std::string& help = "") noexcept;

  // Removes -h,--help: Parse does not return kHelp then.
  void NoHelpFlag() noexcept;
  // Sets the usage behind the name, a line for each way to call it, such as
  // "[flags] TRACE". The default is made of the definitions.
  void Usage(std::vector<std::string> lines) noexcept;
  // The text below the flags of the help.
  void Footer(const std::string& text) noexcept;
  // Unknown arguments are no error: remaining() returns them.
  void AllowExtras() noexcept;

  // Adds a command below this one, which owns it. It takes the options of its
  // parents, too, and has its own -h,--help.
  CommandLine* AddCommand(const std::string& name,
                          const std::string& purpose) noexcept;
  // Only one of the commands below this one can be given. A second one is an
  // argument that is not expected.
  void AtMostOneCommand() noexcept;

  // Reads the arguments behind argv[0], the name of the program. A second call
  // forgets the arguments of the first, but not what it wrote to targets.
  Outcome Parse(int argc, const char* const* argv) noexcept;
  // The same, without the name of the program.
  Outcome Parse(std::vector<std::string> arguments) noexcept;
  // For a program or a command: prints the help, or the error with exit code 2,
  // and returns the exit code. It returns nothing if the arguments were parsed.
  absl::optional<int> ParseForMain(int argc, const char* const* argv) noexcept;

  // Why the last Parse returned kError: one printable line, which proposes a
  // flag for an unknown one.
  const std::string& error() const;
  // The same in the words of CLI11, as they are: of any length and characters.
  const std::string& plain_error() const;

  // The text of --help, in the form of help_text.h. It is the help of the
  // command that the last Parse saw, if there are commands.
  std::string Help() const noexcept;
  // The options with dashes as data.
  std::vector<CommandFlag> Flags() const noexcept;
  // All options, also positional arguments and --help, as they were added.
  std::vector<Option> options() const noexcept;

  // Whether the option was given; `name` is one of its names with dashes.
  bool Given(const std::string& name) const noexcept;
  // The arguments that no option took, also those of commands.
  std::vector<std::string> remaining() const noexcept;

  // The name of a command; "fncache load" in the example above.
  std::string name() const noexcept;
  // Whether the last Parse saw this command.
  bool parsed() const noexcept;
  // The commands directly below this one, as they were added.
  std::vector<const CommandLine*> commands() const noexcept;
  // Their names.
  std::vector<std::string> words() const;
  // The first of those that the last Parse saw, or null.
  const CommandLine* given_command() const noexcept;

 private:
  struct Impl;
  explicit CommandLine(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace fncache

#endif  // FNCACHE_COMMON_COMMAND_LINE_H_
