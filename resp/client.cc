// SPDX-License-Identifier: Apache-2.0
#include "resp/client.h"

#include <atomic>
#include <chrono>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/mutex.h"
#include "common/threads.h"
#include "resp/cluster.h"
#include "resp/node_client.h"

namespace fncache::resp {
namespace {

using Clock = std::chrono::steady_clock;
using NodePointer = std::shared_ptr<NodeClient>;

constexpr std::chrono::seconds kReadSlotsEvery(1);
// Bound of the reply to CLUSTER SLOTS.
constexpr size_t kMostSlotsReply = 8 << 20;

class ClientOfNodes final : public Client {
 public:
  explicit ClientOfNodes(ClientOptions options) {
    owner_.options = std::move(options);
    owner_.moved = [this](const NodeClient& node, absl::string_view words) {
      Follow(*ParseRedirection(words), node, /*first=*/true);
    };
    const Peer peer = {owner_.options.endpoint, VerifiedName({})};
    MutexLock lock(&mutex_);
    seed_ = std::make_shared<NodeClient>(&owner_, peer, "");
    nodes_[absl::StrCat(AddressOf(peer.endpoint), " ", peer.name)] = seed_;
    thread_ = std::thread([this] { Work(); });
  }

  ~ClientOfNodes() override {
    ClientOfNodes::Stop();
    std::map<std::string, NodePointer> nodes;
    std::vector<NodePointer> slots;
    std::vector<NodePointer> retired;
    {
      MutexLock lock(&mutex_);
      nodes.swap(nodes_);
      slots.swap(slots_);
      retired.swap(retired_);
    }
    thread_.join();
    // The nodes' threads may use the members until they have ended.
    slots.clear();
    nodes.clear();
    retired.clear();
    seed_.reset();
  }

  void Stop() override {
    MutexLock lock(&mutex_);
    owner_.stop = true;
    changed_.SignalAll();
    for (const auto& [id, node] : nodes_) node->Stop();
    for (const NodePointer& node : retired_) node->Stop();
  }

  Answer Run(const Command& command) override {
    NodePointer node = NodeFor(command.key);
    Answer answer = node->Run(command, /*asking=*/false);
    for (bool followed = false; answer.outcome == Outcome::kError;
         followed = true) {
      const auto redirection = ParseRedirection(answer.reply.text);
      if (!redirection) break;
      ++redirections_;
      const NodePointer to = Follow(*redirection, *node, /*first=*/false);
      if (followed || to == nullptr) {
        return {Outcome::kDown, {}, absl::StrCat("not followed: ", answer.why)};
      }
      answer = to->Run(command, redirection->ask);
      node = to;
    }
    return answer;
  }

  Node NodeOf(absl::string_view key) const override {
    return NodeFor(key)->figures();
  }

  ServerFigures figures() const override {
    ServerFigures figures;
    figures.redirections = redirections_;
    figures.broken = owner_.broken;
    MutexLock lock(&mutex_);
    figures.cluster = !slots_.empty();
    for (const auto& [id, node] : nodes_) {
      figures.nodes.push_back(node->figures());
    }
    return figures;
  }

 private:
  std::string VerifiedName(const Address& address) const {
    const ClientOptions& options = owner_.options;
    if (!options.endpoint.tls) return "";
    if (!options.server_name.empty()) return options.server_name;
    return address.name.empty() ? options.endpoint.host : address.name;
  }

  NodePointer NodeFor(absl::string_view key) const {
    MutexLock lock(&mutex_);
    if (key.empty() || slots_.empty()) return seed_;
    const NodePointer& node = slots_[SlotOf(key)];
    return node == nullptr ? seed_ : node;
  }

  // The node at an address that `asked` gave, made if it is new. Null beyond
  // kMostNodes and kMostNew, and without a thread. `any_name`: its announced
  // name is not known.
  NodePointer Find(const Address& address, const NodeClient& asked,
                   bool any_name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Peer peer;
    peer.endpoint = {address.host, address.port, "",
                     owner_.options.endpoint.tls};
    peer.name = VerifiedName(address);
    std::string& host = peer.endpoint.host;
    if (host.empty()) host = asked.peer().endpoint.host;
    if (host.empty()) host = "localhost";  // of a unix socket
    const std::string at = absl::StrCat(AddressOf(peer.endpoint), " ");
    const std::string id = at + peer.name;
    const auto known = any_name ? nodes_.lower_bound(at) : nodes_.find(id);
    if (known != nodes_.end() && absl::StartsWith(known->first, at)) {
      return known->second;
    }
    if (owner_.stop || nodes_.size() + retired_.size() >= kMostNodes ||
        owner_.fresh >= kMostNew || !CheckThreads(1).ok()) {
      return nullptr;
    }
    return nodes_[id] = std::make_shared<NodeClient>(&owner_, std::move(peer),
                                                     asked.secret());
  }

  // Applies a redirection; `first`: unless this is known to be a Cluster. Null:
  // there is no such node.
  NodePointer Follow(const Redirection& redirection, const NodeClient& asked,
                     bool first) {
    MutexLock lock(&mutex_);
    if (first && !slots_.empty()) return nullptr;
    NodePointer node = Find(redirection.to, asked, /*any_name=*/true);
    if (slots_.empty()) slots_.resize(kSlots);
    // An ASK may lead to a node without slots, which reading them retires.
    moved_ = true;
    changed_.Signal();
    if (node != nullptr && !redirection.ask) slots_[redirection.slot] = node;
    return node;
  }

  void ApplySlots(const std::vector<SlotRange>& ranges, const NodeClient& asked)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<NodePointer> slots(kSlots);
    std::set<NodePointer> named = {seed_};
    incomplete_ = false;
    for (const SlotRange& range : ranges) {
      const NodePointer node = Find(range.master, asked, /*any_name=*/false);
      named.insert(node);
      if (node == nullptr) incomplete_ = true;
      std::fill(slots.begin() + range.first, slots.begin() + range.last + 1,
                node);
    }
    slots_ = std::move(slots);
    for (auto known = nodes_.begin(); known != nodes_.end();) {
      const auto next = std::next(known);
      if (named.count(known->second) == 0) {
        known->second->Stop();
        retired_.push_back(std::move(known->second));
        nodes_.erase(known);
      }
      known = next;
    }
  }

  // The node that is asked for the slots: one that is up, another one each
  // time. Null: there is no reason to ask, or no node.
  NodePointer NodeToAsk() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<NodePointer> up;
    for (const auto& [id, node] : nodes_) {
      if (node->figures().state == Node::State::kUp) up.push_back(node);
    }
    const bool missing = !slots_.empty() && up.size() < nodes_.size();
    if (up.empty() || !(moved_ || missing || incomplete_)) return nullptr;
    return up[round_++ % up.size()];
  }

  void Work() {
    Command command;
    command.words = {"CLUSTER", "SLOTS"};
    command.max_reply_bytes = kMostSlotsReply;
    Clock::time_point next;
    MutexLock lock(&mutex_);
    while (!owner_.stop) {
      // A retired node is destroyed when that does not wait for its thread.
      for (size_t i = retired_.size(); i-- > 0;) {
        if (retired_[i].use_count() > 1 || !retired_[i]->ended()) continue;
        retired_.erase(retired_.begin() + static_cast<ptrdiff_t>(i));
      }
      const Clock::time_point now = Clock::now();
      const NodePointer node = now < next ? nullptr : NodeToAsk();
      if (node == nullptr) {
        const Clock::duration wait = now < next ? next - now : kReadSlotsEvery;
        changed_.WaitWithTimeout(&mutex_, absl::FromChrono(wait));
        continue;
      }
      next = now + kReadSlotsEvery;
      moved_ = false;
      command.deadline = now + absl::ToChronoNanoseconds(kBackgroundLimit);
      mutex_.Unlock();
      const Answer answer = node->Run(command, /*asking=*/false);
      const std::vector<SlotRange> ranges = ParseSlots(answer.reply);
      mutex_.Lock();
      if (!owner_.stop && !ranges.empty()) ApplySlots(ranges, *node);
    }
  }

  NodeClient::Owner owner_;
  std::atomic<uint64_t> redirections_{0};
  NodePointer seed_;  // the endpoint's
  mutable Mutex mutex_;
  CondVar changed_;
  // By address and verified name.
  std::map<std::string, NodePointer> nodes_ ABSL_GUARDED_BY(mutex_);
  // By slot; empty until the first MOVED. Null: the seed.
  std::vector<NodePointer> slots_ ABSL_GUARDED_BY(mutex_);
  std::vector<NodePointer> retired_ ABSL_GUARDED_BY(mutex_);
  bool moved_ ABSL_GUARDED_BY(mutex_) = false;  // since slots were last read
  // A slot of the last map has no node.
  bool incomplete_ ABSL_GUARDED_BY(mutex_) = false;
  size_t round_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Client> Client::Create(ClientOptions options) {
  return std::make_unique<ClientOfNodes>(std::move(options));
}

}  // namespace fncache::resp
