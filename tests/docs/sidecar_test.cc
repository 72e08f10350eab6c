// SPDX-License-Identifier: Apache-2.0
// deploy/crossplane/sidecar.yaml, which the README shows: what fncache is given
// there starts it, the function is where fncache looks for it, and outlives it.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/duration.h"
#include "common/size.h"
#include "common/yaml.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::docs {
namespace {

using ::testing::HasSubstr;
using testing::Process;

constexpr char kFile[] = FNCACHE_SOURCE_DIR "/deploy/crossplane/sidecar.yaml";

class SidecarTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto file = ReadYamlFile(kFile);
    ASSERT_TRUE(file.ok()) << file.status();
    root_ = *file;
    pod_ =
        &At(root_, {"spec", "deploymentTemplate", "spec", "template", "spec"});
  }

  static const YamlNode& At(const YamlNode& node,
                            const std::vector<std::string>& path) {
    const YamlNode* at = &node;
    for (const std::string& key : path) {
      at = at->Find(key);
      if (at == nullptr) {
        ADD_FAILURE() << "no " << key;
        static const YamlNode* const kNone = new YamlNode;
        return *kNone;
      }
    }
    return *at;
  }
  const YamlNode& Container(const std::string& name) const {
    for (const YamlNode& container : At(*pod_, {"containers"}).items) {
      if (At(container, {"name"}).scalar == name) return container;
    }
    ADD_FAILURE() << "no container " << name;
    return *pod_;
  }
  std::vector<std::string> Arguments(const std::string& container) const {
    std::vector<std::string> arguments;
    for (const YamlNode& item : At(Container(container), {"args"}).items) {
      arguments.push_back(item.scalar);
    }
    return arguments;
  }
  // The value of a flag `--NAME=VALUE`.
  std::string Flag(const std::string& container, const std::string& name,
                   const std::string& otherwise) const {
    const std::string start = absl::StrCat("--", name, "=");
    for (const std::string& argument : Arguments(container)) {
      if (absl::StartsWith(argument, start)) {
        return argument.substr(start.size());
      }
    }
    return otherwise;
  }
  // Where fncache finds a volume.
  std::string MountOf(const std::string& volume) const {
    for (const YamlNode& mount :
         At(Container("fncache"), {"volumeMounts"}).items) {
      if (At(mount, {"name"}).scalar == volume) {
        return At(mount, {"mountPath"}).scalar;
      }
    }
    ADD_FAILURE() << volume << " is not mounted";
    return "";
  }
  std::string Variable(const std::string& name) const {
    for (const YamlNode& variable : At(Container("fncache"), {"env"}).items) {
      if (At(variable, {"name"}).scalar == name) {
        return At(variable, {"value"}).scalar;
      }
    }
    ADD_FAILURE() << "no " << name;
    return "";
  }
  static double Bytes(const std::string& text) {
    const auto size = ParseSize(text);
    EXPECT_TRUE(size.ok()) << size.status();
    return size.value_or(0);
  }
  static absl::Duration Seconds(const YamlNode& node) {
    int seconds = -1;
    EXPECT_TRUE(absl::SimpleAtoi(node.scalar, &seconds)) << node.scalar;
    return absl::Seconds(seconds);
  }

  YamlNode root_;
  const YamlNode* pod_ = nullptr;
};

TEST_F(SidecarTest, ItsArgumentsAreAccepted) {
  // The environment has what Crossplane mounts and what the labels say.
  std::vector<std::string> arguments = Arguments("fncache");
  arguments.push_back("--check");
  Process serve(arguments, {{"FUNCTION_NAME", "function-x"},
                            {"REVISION_NAME", "function-x-1234567890ab"},
                            {"TLS_SERVER_CERTS_DIR", FNCACHE_SOURCE_DIR
                             "/tests/data/certificates/server"}});
  EXPECT_EQ(serve.Wait(), 0) << serve.Stderr();
  EXPECT_EQ(serve.Stderr(), "");
  EXPECT_THAT(serve.Stdout(), HasSubstr("$TLS_SERVER_CERTS_DIR"));
  EXPECT_THAT(serve.Stdout(), HasSubstr("generation: function-x-1234567890ab"));
}

TEST_F(SidecarTest, ItsVariablesAreThoseThatTheBinaryReads) {
  std::vector<std::string> names;
  for (const YamlNode& variable : At(Container("fncache"), {"env"}).items) {
    names.push_back(At(variable, {"name"}).scalar);
  }
  EXPECT_THAT(names, ::testing::ElementsAre("FUNCTION_NAME", "REVISION_NAME",
                                            "TLS_SERVER_CERTS_DIR"));
}

TEST_F(SidecarTest, TheFunctionIsWhereFncacheLooksForIt) {
  EXPECT_EQ(Flag("package-runtime", "address", ""),
            Flag("fncache", "upstream", "-"));
  EXPECT_EQ(Flag("fncache", "listen", ""), "0.0.0.0:9443");
}

TEST_F(SidecarTest, TheFunctionOutlivesTheDrain) {
  const auto drain = ParseGoDuration(Flag("fncache", "drain", "25s"));
  const auto delay = ParseGoDuration(Flag("fncache", "drain-delay", "0s"));
  ASSERT_TRUE(drain.ok() && delay.ok());
  const absl::Duration sleep =
      Seconds(At(Container("package-runtime"),
                 {"lifecycle", "preStop", "sleep", "seconds"}));
  EXPECT_GE(sleep, *drain + *delay);
  EXPECT_GE(Seconds(At(*pod_, {"terminationGracePeriodSeconds"})),
            sleep + absl::Seconds(5));
}

TEST_F(SidecarTest, TheDiskBoundFitsItsVolume) {
  // With the damaged database that may be kept beside the new one.
  const double disk = Bytes(Flag("fncache", "cache-disk", ""));
  for (const YamlNode& volume : At(*pod_, {"volumes"}).items) {
    const std::string& name = At(volume, {"name"}).scalar;
    if (name == "run") continue;  // the admin socket's
    EXPECT_EQ(MountOf(name), Flag("fncache", "cache-dir", "-"));
    EXPECT_GE(Bytes(At(volume, {"emptyDir", "sizeLimit"}).scalar), 2.2 * disk);
  }
}

// By the formula of docs/operating.md, with requests of 1 MiB, 16 at once.
TEST_F(SidecarTest, ItsMemoryIsWhatItTakes) {
  constexpr double kMiB = 1 << 20;
  const double tier = Bytes(Flag("fncache", "cache-memory", ""));
  const YamlNode& resources = At(Container("fncache"), {"resources"});
  const double asked = Bytes(At(resources, {"requests", "memory"}).scalar);
  EXPECT_GE(asked, 1.2 * tier + (66 + 80 + 48 + 16) * kMiB);
  EXPECT_GE(Bytes(At(resources, {"limits", "memory"}).scalar), asked);
}

TEST_F(SidecarTest, CertificatesAreWhereCrossplaneMountsThem) {
  // Crossplane's name for the volume that it adds.
  EXPECT_EQ(MountOf("tls-server-certs"), Variable("TLS_SERVER_CERTS_DIR"));
}

// Its probes and Prometheus' ask where it listens, for what it serves.
TEST_F(SidecarTest, ProbesFindTheAdminEndpoint) {
  const std::string admin = Flag("fncache", "admin", "");
  const std::string port = admin.substr(admin.rfind(':') + 1);
  const YamlNode& container = Container("fncache");
  const YamlNode& open = At(container, {"ports"}).items.at(0);
  EXPECT_EQ(At(open, {"containerPort"}).scalar, port);
  EXPECT_EQ(At(root_, {"spec", "deploymentTemplate", "spec", "template",
                       "metadata", "annotations", "prometheus.io/port"})
                .scalar,
            port);
  Process serve({"serve", "--insecure", "--listen=127.0.0.1:0",
                 "--admin=127.0.0.1:0", "--upstream=127.0.0.1:1"});
  ASSERT_TRUE(serve.WaitForStderr("(admin: "));
  for (const char* probe : {"readinessProbe", "livenessProbe"}) {
    const YamlNode& get = At(container, {probe, "httpGet"});
    EXPECT_EQ(At(get, {"port"}).scalar, At(open, {"name"}).scalar) << probe;
    int status = 0;
    testing::HttpGet(serve.Listening().at(1), At(get, {"path"}).scalar,
                     &status);
    EXPECT_THAT(status, ::testing::AnyOf(200, 503));
  }
}

TEST_F(SidecarTest, ItsTuningAndLifetimesAreTheReadmes) {
  const std::string page = testing::ReadFile(FNCACHE_SOURCE_DIR "/README.md");
  EXPECT_THAT(page, HasSubstr(absl::StrCat("\ntune: ",
                                           Flag("fncache", "tune", "off"))));
  EXPECT_THAT(page, HasSubstr(absl::StrCat(
                        "\nttl: {min: ", Flag("fncache", "ttl-min", ""), "}")));
  EXPECT_THAT(page,
              HasSubstr(absl::StrCat("\nrequeue_ttl: ",
                                     Flag("fncache", "requeue-ttl", ""))));
}

}  // namespace
}  // namespace fncache::docs
