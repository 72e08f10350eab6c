// SPDX-License-Identifier: Apache-2.0
#include "common/command_line.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Outcome = CommandLine::Outcome;
using Texts = std::vector<std::string>;

// Why `line` refuses the arguments; empty if it takes them.
std::string Why(CommandLine* line, const Texts& arguments) {
  return line->Parse(arguments) == Outcome::kError ? line->error() : "";
}

TEST(CommandLineTest, FlagsAreReadOffTheOptions) {
  CommandLine line;
  std::string listen;
  Texts masks;
  bool trace = false;
  line.AddOption("-l,--listen", &listen, "Where callers\nconnect")
      .TypeName("ADDR");
  line.AddOption("--mask", &masks, "Left out").TypeName("FIELD");
  line.AddFlag("--trace", &trace, "Say more");
  line.AddOption("FILES", &masks);
  const std::vector<CommandFlag> flags = line.Flags();
  ASSERT_EQ(flags.size(), 4u);
  EXPECT_THAT(flags[0].names, ElementsAre("-h", "--help"));
  EXPECT_EQ(flags[0].argument, "");
  EXPECT_THAT(flags[1].names, ElementsAre("-l", "--listen"));
  EXPECT_EQ(flags[1].argument, "ADDR");
  EXPECT_EQ(flags[1].help, "Where callers connect");
  EXPECT_FALSE(flags[1].repeats);
  EXPECT_EQ(flags[2].argument, "FIELD");
  EXPECT_TRUE(flags[2].repeats);
  EXPECT_THAT(flags[3].names, ElementsAre("--trace"));
  EXPECT_EQ(flags[3].argument, "");
}

TEST(CommandLineTest, SaysWhyItCouldNotParse) {
  CommandLine line;
  std::string listen;
  line.AddOption("--listen", &listen);
  EXPECT_EQ(Why(&line, {"--lisetn"}),
            "unknown flag --lisetn; did you mean --listen?");
  EXPECT_EQ(Why(&line, {"b", "x"}), "unexpected argument b");
  EXPECT_THAT(Why(&line, {"--listen"}), StartsWith("--listen"));
  EXPECT_EQ(Why(&line, {"--listen", "a"}), "");
  EXPECT_EQ(line.error(), "");
  EXPECT_EQ(line.plain_error(), "");
}

TEST(CommandLineTest, AnErrorIsOneShortLine) {
  CommandLine line;
  int number = 0;
  line.AddOption("--number", &number);
  const std::string why =
      Why(&line, {"--number", "a\nb" + std::string(1 << 20, 'x')});
  EXPECT_THAT(why, StartsWith("Could not convert: --number = a\\nb"));
  EXPECT_LT(why.size(), 1000u);
  EXPECT_THAT(line.plain_error(),
              StartsWith("Could not convert: --number = a\nb"));
  EXPECT_GT(line.plain_error().size(), size_t{1} << 20);
}

TEST(CommandLineTest, TargetsGetWhatWasGiven) {
  CommandLine line;
  std::string text = "default";
  std::string untouched = "default";
  Texts list = {"default"};
  int number = 0;
  uint32_t small = 0;
  uint64_t large = 0;
  double fraction = 0;
  bool flag = false;
  Texts taken;
  line.AddOption("--text", &text);
  line.AddOption("--untouched", &untouched);
  line.AddOption("--list", &list);
  line.AddOption("--number", &number);
  line.AddOption("--small", &small);
  line.AddOption("--large", &large);
  line.AddOption("--fraction", &fraction);
  line.AddFlag("--flag", &flag);
  line.AddOption("--take", [&taken](const Texts& texts) { taken = texts; });
  const char* const arguments[] = {"program", "--text=a",
                                   "--list",  "b",
                                   "c",       "--number",
                                   "-7",      "--small",
                                   "7",       "--large=18446744073709551615",
                                   "--flag",  "--fraction",
                                   "0.5",     "--take",
                                   "d"};
  EXPECT_EQ(line.Parse(static_cast<int>(std::size(arguments)), arguments),
            Outcome::kParsed);
  EXPECT_EQ(text, "a");
  EXPECT_EQ(untouched, "default");
  EXPECT_THAT(list, ElementsAre("b", "c"));
  EXPECT_EQ(number, -7);
  EXPECT_EQ(small, 7u);
  EXPECT_EQ(large, UINT64_MAX);
  EXPECT_EQ(fraction, 0.5);
  EXPECT_TRUE(flag);
  EXPECT_THAT(taken, ElementsAre("d"));
}

TEST(CommandLineTest, HelpIsNoError) {
  CommandLine line("Serves calls.", "fncache example");
  line.Footer("The end.");
  EXPECT_EQ(line.Parse({"--help"}), Outcome::kHelp);
  EXPECT_EQ(line.Parse({"-h"}), Outcome::kHelp);
  EXPECT_EQ(line.error(), "");
  EXPECT_EQ(line.Help(),
            "Serves calls.\n"
            "\n"
            "Usage: fncache example [flags]\n"
            "\n"
            "Flags:\n"
            "  -h, --help                      Print this\n"
            "\n"
            "The end.\n");
}

TEST(CommandLineTest, WithoutItsHelpFlagHelpIsAFlagOfTheCaller) {
  CommandLine line;
  bool help = false;
  EXPECT_EQ(line.options().size(), 1u);
  line.NoHelpFlag();
  EXPECT_THAT(line.options(), IsEmpty());
  EXPECT_EQ(Why(&line, {"--help"}), "unknown flag --help");
  line.AddFlag("-h,--help", &help);
  EXPECT_EQ(line.Parse({"--help"}), Outcome::kParsed);
  EXPECT_TRUE(help);
}

TEST(CommandLineTest, HelpIsMadeOfTheDefinitions) {
  CommandLine line("Tries", "fncache try");
  std::string text = "x", broken;
  int number = 1;
  Texts repeated, files;
  line.AddOption("-t,--text", &text,
                 "One two three four five six seven eight nine ten eleven "
                 "twelve thirteen")
      .TypeName("TEXT")
      .ShowDefault();
  line.AddOption("--broken", &broken, "here\nand there").TypeName("TEXT");
  line.AddOption("--number", &number)
      .Range(1, 9)
      .TypeName("N")
      .Group("Numbers")
      .ShowDefault();
  line.AddOption("--positive", &number, "A")
      .Positive()
      .TypeName("N")
      .Group("Numbers");
  line.AddOption("--repeated", &repeated, "C").Repeats().TypeName("TEXT");
  line.AddOption("FILE", &files, "Files").Required().Expected(1, 2);
  line.AddOption("MORE", &broken);
  EXPECT_EQ(
      line.Help(),
      "Tries.\n"
      "\n"
      "Usage: fncache try [flags] FILE... [MORE]\n"
      "\n"
      "Arguments:\n"
      "  FILE                            Files\n"
      "\n"
      "Flags:\n"
      "  -t, --text TEXT                 One two three four five six seven "
      "eight nine\n"
      "                                  ten eleven twelve thirteen (default "
      "x)\n"
      "      --broken TEXT               Here and there\n"
      "      --repeated TEXT             C\n"
      "\n"
      "Numbers:\n"
      "      --number N                  (1 to 9; default 1)\n"
      "      --positive N                A (above 0)\n"
      "  -h, --help                      Print this\n");
  // Nothing of it stays in the definition.
  EXPECT_THAT(line.Flags()[1].help, HasSubstr("nine ten eleven twelve"));
  EXPECT_EQ(line.Flags()[3].argument, "N");
  EXPECT_EQ(line.Help(), line.Help());
  line.Usage({"[flags] FILE", "other"});
  EXPECT_THAT(line.Help(), HasSubstr("\nUsage: fncache try [flags] FILE\n"
                                     "       fncache try other\n"));
}

TEST(CommandLineTest, ValuesAreChecked) {
  CommandLine line;
  int ranged = 0, positive = 0;
  std::string one_of, checked;
  Texts files;
  line.AddOption("--ranged", &ranged).Range(5, 7);
  line.AddOption("--positive", &positive).Positive();
  line.AddOption("--one-of", &one_of).OneOf({"a", "b"}).TypeName("a|b");
  line.AddOption("--checked", &checked).Check([](const std::string& text) {
    return text == "good" ? "" : "is bad";
  });
  line.AddOption("FILE", &files).Required().Expected(1, 2);
  EXPECT_EQ(Why(&line, {"f", "--ranged=5", "--positive=1", "--one-of=b",
                        "--checked=good"}),
            "");
  EXPECT_EQ(Why(&line, {"f", "--ranged=4"}),
            "--ranged: Value 4 not in range 5 to 7");
  EXPECT_THAT(Why(&line, {"f", "--positive=0"}), StartsWith("--positive: "));
  EXPECT_EQ(Why(&line, {"f", "--one-of=c"}), "--one-of: c not in {a,b}");
  EXPECT_EQ(Why(&line, {"f", "--checked=x"}), "--checked: is bad");
  EXPECT_EQ(Why(&line, {}), "FILE is required");
  EXPECT_THAT(Why(&line, {"f", "g", "h"}), Not(IsEmpty()));
  EXPECT_THAT(Why(&line, {"f", "--ranged=5", "--ranged=6"}),
              StartsWith("--ranged: "));
}

TEST(CommandLineTest, ListsDifferInWhatAnOccurrenceTakes) {
  CommandLine line;
  Texts lists, repeats, repeats_with_lists, rest;
  line.AddOption("--lists", &lists);
  line.AddOption("--repeats", &repeats).Repeats();
  line.AddOption("--repeats-with-lists", &repeats_with_lists)
      .RepeatsWithLists();
  line.AddOption("REST", &rest);
  EXPECT_EQ(Why(&line, {"--lists", "a", "b", "--lists=c"}), "");
  EXPECT_THAT(lists, ElementsAre("a", "b", "c"));
  EXPECT_THAT(rest, IsEmpty());
  EXPECT_EQ(Why(&line, {"--repeats", "a", "b", "--repeats=c"}), "");
  EXPECT_THAT(repeats, ElementsAre("a", "c"));
  EXPECT_THAT(rest, ElementsAre("b"));
  EXPECT_EQ(
      Why(&line, {"--repeats-with-lists", "a", "b", "--repeats-with-lists=c"}),
      "");
  EXPECT_THAT(repeats_with_lists, ElementsAre("a", "b", "c"));
}

TEST(CommandLineTest, FlagsAreCounted) {
  CommandLine line;
  int64_t count = 100;
  line.AddFlag("-v,--verbose", [&count](int64_t times) { count = times; });
  EXPECT_EQ(Why(&line, {}), "");
  EXPECT_EQ(count, 100);
  EXPECT_EQ(Why(&line, {"-v", "--verbose", "-v"}), "");
  EXPECT_EQ(count, 3);
  EXPECT_EQ(Why(&line, {"--verbose=false"}), "");
  EXPECT_EQ(count, -1);
  EXPECT_EQ(Why(&line, {"--verbose=5"}), "");
  EXPECT_EQ(count, 5);
  for (const std::string text : {"x", "yess", "9999999999999999999999"}) {
    EXPECT_EQ(Why(&line, {"--verbose=" + text}),
              "--verbose: \"" + text +
                  "\" is not accepted; accepted: true, false or a whole "
                  "number");
  }
}

TEST(CommandLineTest, OptionsSayWhatWasGiven) {
  CommandLine line;
  std::string listen = "x";
  Texts masks, files;
  const CommandLine::Option option =
      line.AddOption("-l,--listen", &listen).TypeName("ADDR").ShowDefault();
  line.AddOption("-m", &masks).Repeats();
  const CommandLine::Option file = line.AddOption("FILE", &files);
  EXPECT_EQ(line.Parse({"-m", "a", "-m", "b"}), Outcome::kParsed);
  EXPECT_FALSE(option.given());
  EXPECT_FALSE(line.Given("--listen"));
  EXPECT_TRUE(line.Given("-m"));
  const std::vector<CommandLine::Option> options = line.options();
  ASSERT_EQ(options.size(), 4u);
  EXPECT_EQ(options[0].name(), "--help");
  EXPECT_EQ(options[0].argument(), "");
  EXPECT_EQ(options[1].name(), "--listen");
  EXPECT_EQ(options[1].argument(), "ADDR");
  EXPECT_EQ(options[2].name(), "-m");
  EXPECT_THAT(options[2].results(), ElementsAre("a", "b"));
  EXPECT_EQ(options[3].name(), "FILE");
  EXPECT_TRUE(options[1] == option);
  EXPECT_TRUE(options[3] == file);
  EXPECT_TRUE(options[2] != option);
  // A second Parse forgets the first.
  EXPECT_EQ(line.Parse({"--listen", "y"}), Outcome::kParsed);
  EXPECT_TRUE(option.given());
  EXPECT_FALSE(line.Given("-m"));
  EXPECT_THAT(options[2].results(), IsEmpty());
}

TEST(CommandLineTest, ExtrasAreKept) {
  CommandLine line;
  line.AllowExtras();
  EXPECT_EQ(line.Parse({"--unknown", "a", "b"}), Outcome::kParsed);
  EXPECT_THAT(line.remaining(), ElementsAre("--unknown", "a", "b"));
}

TEST(CommandLineTest, AMoveKeepsHandlesAndCommands) {
  CommandLine from("", "fncache");
  std::string text;
  const CommandLine::Option option = from.AddOption("--text", &text);
  const CommandLine* const command = from.AddCommand("go", "Goes");
  CommandLine line = std::move(from);
  EXPECT_EQ(line.Parse({"go", "--text", "a"}), Outcome::kParsed);
  EXPECT_EQ(text, "a");
  EXPECT_TRUE(option.given());
  EXPECT_TRUE(command->parsed());
  EXPECT_EQ(line.given_command(), command);
}

class CommandLineWithCommandsTest : public ::testing::Test {
 protected:
  CommandLineWithCommandsTest() {
    line_.AddOption("--socket", &socket_).TypeName("PATH");
    stats_ = line_.AddCommand("stats", "What it does");
    trace_ = line_.AddCommand("trace", "Traces");
    trace_->AtMostOneCommand();
    start_ = trace_->AddCommand("start", "Starts");
    stop_ = trace_->AddCommand("stop", "Stops");
    start_->AddOption("--level", &level_, "Which").TypeName("LEVEL");
  }

  std::string socket_, level_;
  CommandLine line_{"Administers.", "fncache admin"};
  CommandLine* stats_;
  CommandLine* trace_;
  CommandLine* start_;
  CommandLine* stop_;
};

TEST_F(CommandLineWithCommandsTest, ACommandTakesTheOptionsOfItsParents) {
  EXPECT_EQ(line_.Parse({"trace", "start", "--socket", "s", "--level=full"}),
            Outcome::kParsed);
  EXPECT_EQ(socket_, "s");
  EXPECT_EQ(level_, "full");
  EXPECT_TRUE(trace_->parsed());
  EXPECT_TRUE(start_->parsed());
  EXPECT_FALSE(stats_->parsed());
  EXPECT_FALSE(stop_->parsed());
  EXPECT_EQ(line_.given_command(), trace_);
  EXPECT_EQ(trace_->given_command(), start_);
  EXPECT_EQ(start_->given_command(), nullptr);
  EXPECT_EQ(line_.Parse(Texts()), Outcome::kParsed);
  EXPECT_EQ(line_.given_command(), nullptr);
}

TEST_F(CommandLineWithCommandsTest, AreListed) {
  EXPECT_THAT(line_.commands(), ElementsAre(stats_, trace_));
  EXPECT_THAT(line_.words(), ElementsAre("stats", "trace"));
  EXPECT_THAT(trace_->commands(), ElementsAre(start_, stop_));
  EXPECT_EQ(start_->name(), "start");
  EXPECT_EQ(line_.name(), "fncache admin");
}

TEST_F(CommandLineWithCommandsTest, HelpIsThatOfTheCommand) {
  EXPECT_THAT(line_.Help(), StartsWith("Administers.\n\nUsage: fncache admin "
                                       "COMMAND [flags]\n"));
  EXPECT_THAT(line_.Help(),
              HasSubstr("\nCommands:\n"
                        "  stats                           What it does\n"
                        "  trace                           Traces\n"));
  EXPECT_EQ(line_.Parse({"trace", "start", "--help"}), Outcome::kHelp);
  EXPECT_THAT(line_.Help(), StartsWith("Starts.\n\nUsage: fncache admin trace "
                                       "start [flags]\n"));
  EXPECT_THAT(line_.Help(), HasSubstr("--level LEVEL"));
}

TEST_F(CommandLineWithCommandsTest, AnErrorKnowsTheFlagsOfTheCommand) {
  EXPECT_EQ(Why(&line_, {"trace", "start", "--levle=full"}),
            "unknown flag --levle; did you mean --level?");
  EXPECT_EQ(Why(&line_, {"trace", "start", "--soket=s"}),
            "unknown flag --soket; did you mean --socket?");
  EXPECT_EQ(Why(&line_, {"stats", "--levle=full"}), "unknown flag --levle");
  EXPECT_EQ(Why(&line_, {"trace", "start", "stop"}),
            "unexpected argument stop");
  EXPECT_THAT(line_.remaining(), ElementsAre("stop"));
}

TEST(CommandLineForMainTest, PrintsAndReturnsTheExitCode) {
  CommandLine line("Fills a directory.");
  std::string dir;
  line.AddOption("--dir", &dir, "Which").Required();
  const char* const good[] = {"fill", "--dir", "d"};
  EXPECT_EQ(line.ParseForMain(3, good), absl::nullopt);
  EXPECT_EQ(dir, "d");

  const char* const help[] = {"fill", "--help"};
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(line.ParseForMain(2, help), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              StartsWith("Fills a directory.\n\nUsage: fill [flags]\n"));

  ::testing::internal::CaptureStderr();
  EXPECT_EQ(line.ParseForMain(1, good), 2);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "fill: --dir is required; see fill --help\n");
}

TEST(CommandLineDeathTest, ADefinitionThatCannotBeEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  CommandLine line;
  std::string text;
  line.AddOption("--text", &text);
  EXPECT_DEATH(line.AddOption("--text", &text), "");
  EXPECT_DEATH(line.Given("--other"), "");
}

}  // namespace
}  // namespace fncache
