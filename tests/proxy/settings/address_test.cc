// SPDX-License-Identifier: Apache-2.0
#include "proxy/settings/address.h"

#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/temp_dir.h"

namespace fncache::proxy::settings {
namespace {

using ::testing::HasSubstr;

TEST(AddressTest, TakesNamesAndLiteralAddresses) {
  for (const char* text :
       {"0.0.0.0:9443", "127.0.0.1:0", "localhost:1", "[::]:65535", "[::1]:80",
        "[fe80::1]:80", "[::ffff:1.2.3.4]:80", "a-b.c_d.example:443", "h:00080",
        "1.2.3.4.example:1", ":9443", ":0"}) {
    EXPECT_TRUE(CheckAddress(text).ok()) << CheckAddress(text);
  }
}

TEST(AddressTest, RefusesWhatHasNoPort) {
  for (const char* text :
       {"", "localhost", "localhost:", "localhost:http", "localhost:-1",
        "localhost:+1", "localhost:65536", "localhost:100000", "localhost:1 ",
        "localhost: 1", "localhost:0x50", "[::1]", "9443"}) {
    const absl::Status status = CheckAddress(text);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(status.message(), HasSubstr("no port")) << text;
  }
}

TEST(AddressTest, RefusesWhatHasNoHost) {
  for (const char* text :
       {"[]:9443", "::1:9443", "[1.2.3.4]:80", "[h]:80", "[::1:80", "::1]:80",
        "1.2.3:80", "1.2.3.256:80", "999:80", "a b:80", "a/b:80", "http://a:80",
        "a\n:80", "[fe80::1%eth0]:80"}) {
    const absl::Status status = CheckAddress(text);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(status.message(), HasSubstr("no host")) << text;
  }
  EXPECT_FALSE(CheckAddress(std::string(254, 'a') + ":80").ok());
  EXPECT_FALSE(CheckAddress(absl::string_view("a\0b:80", 6)).ok());
}

TEST(AddressTest, WithoutAHostItIsEveryAddress) {
  EXPECT_TRUE(AddressesCollide(":9443", "127.0.0.1:9443"));
  EXPECT_TRUE(AddressesCollide("0.0.0.0:9443", ":9443"));
  EXPECT_FALSE(AddressesCollide(":9443", ":9444"));
  EXPECT_TRUE(LeadsTo("localhost:9443", ":9443"));
  EXPECT_FALSE(CheckAddress(":").ok());
  EXPECT_FALSE(CheckAddress(":65536").ok());
  EXPECT_FALSE(CheckAddress("::9443").ok());
  // Calls have to go to somewhere.
  EXPECT_FALSE(CheckTarget(":9443").ok());
}

TEST(AddressTest, ReasonsAreOneShortLine) {
  const absl::Status status = CheckAddress("a\nb" + std::string(5000, '\xff'));
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
  EXPECT_LT(status.message().size(), 600u);
}

TEST(AddressTest, FunctionsListenOnUnixSocketsToo) {
  for (const std::string& text :
       {std::string("0.0.0.0:9443"), std::string("[::]:0"),
        std::string("unix:/run/f.sock"), std::string("unix:///run/f.sock"),
        std::string("unix:f.sock"), std::string("unix-abstract:f"),
        "unix:" + std::string(107, 'a'), "unix:///" + std::string(106, 'a'),
        "unix-abstract:" + std::string(107, 'a')}) {
    EXPECT_TRUE(CheckListen(text).ok()) << CheckListen(text);
  }
  const std::pair<std::string, const char*> kCases[] = {
      {"unix", "no port"},
      {"/run/f.sock", "no port"},
      {"dns:///h", "no port"},
      {"ipv4:1.2.3.4:1", "no host to listen on"},
      {"unix:", "\"unix:\" has no path"},
      {"unix:///", "no path"},
      {"unix:/", "no path"},
      {"unix-abstract:", "no path"},
      {"unix://host/path", "has a host before the path"},
      {"unix:/a?b", "a path with ? or #"},
      {std::string("unix:/a\0b", 9), "a path with a NUL"},
      {"unix:" + std::string(108, 'a'),
       "too long: 108 bytes, where a unix socket's has at most 107"},
      {"unix:///" + std::string(107, 'a'), "too long: 108 bytes"},
  };
  for (const auto& [text, why] : kCases) {
    const absl::Status status = CheckListen(text);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(status.message(), HasSubstr(why)) << text;
  }
}

TEST(AddressTest, TargetsAreWhatGrpcCanCall) {
  for (const char* text :
       {"localhost:9444", "function.default.svc:1", "1.2.3.4:65535", "[::1]:80",
        "dns:///a.example:9443", "dns://8.8.8.8/a.example:9443",
        "dns://[::1]:53/a:1", "dns:a:1", "dns:///[::1]:80", "unix:/run/f.sock",
        "unix:///run/f.sock", "unix:f.sock", "unix:/a b", "unix-abstract:f",
        "ipv4:1.2.3.4:1", "ipv4:1.2.3.4:1,5.6.7.8:2", "ipv6:[::1]:1",
        "ipv6:[fe80::1%25eth0]:1", "https:443"}) {
    EXPECT_TRUE(CheckTarget(text).ok()) << CheckTarget(text);
  }
}

TEST(AddressTest, TargetsThatGrpcWouldMisreadAreRefused) {
  const struct {
    const char* text;
    const char* why;
  } kCases[] = {
      {"https://h:443", "has a scheme, https://, that gRPC does not take"},
      {"grpc://h:443", "has a scheme, grpc://"},
      {"xds:///h", "has a scheme, xds://"},
      {"://h:1", "has a scheme"},
      {"h", "no port from 1 to 65535"},
      {"h:", "no port"},
      {"h:0", "no port"},
      {"h:65536", "no port"},
      {"h:http", "no port"},
      {"", "no port"},
      {"1.2.3.4", "no port"},
      {"dns:///h", "no port"},
      {"dns:h", "no port"},
      {"dns://h:1", "two slashes"},
      {":1", "no host"},
      {"dns:///:1", "no host"},
      {"::1:80", "no host"},
      {"a b:1", "no host"},
      {"h/path:1", "no host"},
      {"ipv4:h:1", "no IPv4 address"},
      {"ipv4:1.2.3.4", "no port"},
      {"ipv4:1.2.3.4:1,", "no port"},
      {"ipv6:::1:1", "no IPv6 address"},
      {"ipv6:[1.2.3.4]:1", "no IPv6 address"},
      {"unix:", "no path"},
      {"unix:///", "no path"},
      {"unix://host/path", "has a host before the path"},
      {"unix:/a?b", "a path with ? or #"},
      {"unix:/a#b", "a path with ? or #"},
  };
  for (const auto& test : kCases) {
    const absl::Status status = CheckTarget(test.text);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << test.text;
    EXPECT_THAT(status.message(), HasSubstr(test.why)) << test.text;
  }
  EXPECT_THAT(CheckTarget("unix:/" + std::string(108, 'a')).message(),
              HasSubstr("too long"));
  EXPECT_EQ(CheckTarget("h\nb" + std::string(500, 'x')).message().find('\n'),
            absl::string_view::npos);
}

TEST(AddressTest, CollideOnTheSamePortOfTheSameOrEveryHost) {
  const struct {
    const char* a;
    const char* b;
    bool collide;
  } kCases[] = {
      {"h:1", "h:1", true},
      {"h:1", "H:01", true},
      {"h:1", "h:2", false},
      {"h:1", "g:1", false},
      {"h:0", "h:0", false},
      {"0.0.0.0:0", "h:0", false},
      {"0.0.0.0:1", "h:1", true},
      {"0.0.0.0:1", "[::1]:1", true},
      {"[::]:1", "127.0.0.1:1", true},
      {"[0:0:0:0:0:0:0:0]:1", "127.0.0.1:1", true},
      {"[::1]:1", "127.0.0.1:1", false},
      {"[::1]:1", "[0::1]:1", true},
      {"0.0.0.0:1", "h:2", false},
      {"unix:/run/f", "unix:///run/f", true},
      {"unix:/run/./f", "unix:/run/g/../f", true},
      {"unix:f", "unix:./f", true},
      {"unix:/run/f", "unix:/run/g", false},
      {"unix-abstract:f", "unix-abstract:f", true},
      {"unix-abstract:f", "unix-abstract:g", false},
      {"unix-abstract:f", "unix:f", false},
      {"unix:1", "0.0.0.0:1", false},
  };
  for (const auto& test : kCases) {
    EXPECT_EQ(AddressesCollide(test.a, test.b), test.collide)
        << test.a << " " << test.b;
    EXPECT_EQ(AddressesCollide(test.b, test.a), test.collide)
        << test.b << " " << test.a;
  }
}

TEST(AddressTest, TargetsThatLeadBackAreSeen) {
  const struct {
    const char* target;
    const char* listen;
    bool leads;
  } kCases[] = {
      {"127.0.0.1:9443", "127.0.0.1:9443", true},
      {"127.0.0.1:9443", "0.0.0.0:9443", true},
      {"127.0.0.2:9443", "0.0.0.0:9443", true},
      {"localhost:9443", "[::]:9443", true},
      {"dns:///localhost:9443", "0.0.0.0:9443", true},
      {"dns:localhost:9443", "localhost:9443", true},
      {"localhost:9443", "127.0.0.1:9443", true},
      {"ipv4:10.0.0.1:1,127.0.0.1:9443", "0.0.0.0:9443", true},
      {"ipv6:[::1]:9443", "[::]:9443", true},
      {"[::1]:9443", "[::1]:9443", true},
      {"0.0.0.0:9443", "127.0.0.1:9443", true},
      {"[::]:9443", "[::1]:9443", true},
      {"ipv6:[::ffff:127.0.0.1]:9443", "127.0.0.1:9443", true},
      {"[::ffff:10.0.0.1]:9443", "10.0.0.1:9443", true},
      {"[::ffff:127.0.0.1]:9443", "0.0.0.0:9443", true},
      {"0.0.0.0:9443", "10.0.0.1:9443", false},
      // Another machine's, another port's, or unknown.
      {"127.0.0.1:9444", "127.0.0.1:9443", false},
      {"10.0.0.1:9443", "0.0.0.0:9443", false},
      {"dns:///function.default.svc:9443", "0.0.0.0:9443", false},
      {"127.0.0.1:9443", "127.0.0.2:9443", false},
      {"unix:/run/f.sock", "0.0.0.0:9443", false},
      {"127.0.0.1:0", "127.0.0.1:0", false},
      {"unix:/run/f.sock", "unix:///run/f.sock", true},
      {"unix:///run/../run/f.sock", "unix:/run/f.sock", true},
      {"unix:/run/f.sock", "unix:/run/g.sock", false},
      {"unix-abstract:f", "unix-abstract:f", true},
      {"unix-abstract:f", "unix:f", false},
      {"127.0.0.1:9443", "unix:/run/f.sock", false},
      {"localhost:9443", "unix:9443", false},
      {"unixes:9443", "unixes:9443", true},
  };
  for (const auto& test : kCases) {
    EXPECT_EQ(LeadsTo(test.target, test.listen), test.leads)
        << test.target << " " << test.listen;
  }
}

TEST(AddressTest, ATargetThatLeadsBackOverALinkIsSeen) {
  const testing::TempDir dir;
  std::filesystem::create_directory(dir.File("sockets"));
  std::filesystem::create_symlink("sockets", dir.File("link"));
  const std::string listen = absl::StrCat("unix:", dir.File("sockets/f"));
  EXPECT_TRUE(LeadsTo(absl::StrCat("unix:", dir.File("link/f")), listen));
  EXPECT_TRUE(LeadsTo(
      absl::StrCat("unix:",
                   std::filesystem::relative(dir.File("link/f")).string()),
      listen));
  EXPECT_FALSE(LeadsTo(absl::StrCat("unix:", dir.File("link/g")), listen));
}

}  // namespace
}  // namespace fncache::proxy::settings
