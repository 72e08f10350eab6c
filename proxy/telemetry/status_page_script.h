// SPDX-License-Identifier: Apache-2.0
// The script that updates an open status page; see status_page.h. The page is
// complete without it.
//
// Every two seconds it fetches the page, and makes the shown one equal, node by
// node. Unchanged nodes stay, so an unfolded, selected, focused or hovered one
// keeps that state. The script makes no HTML of its own. A hidden page fetches
// nothing.
#ifndef FNCACHE_PROXY_TELEMETRY_STATUS_PAGE_SCRIPT_H_
#define FNCACHE_PROXY_TELEMETRY_STATUS_PAGE_SCRIPT_H_

namespace fncache::proxy::telemetry {

inline constexpr char kPageScript[] = R"(
(() => {
  "use strict";
  const every = 2000;
  const pill = document.getElementById("live");
  const text = document.getElementById("live-text");
  const button = document.getElementById("live-pause");
  let paused = false;
  let timer = 0;

  const become = (node, fresh) => {
    if (node.nodeName !== fresh.nodeName) {
      node.replaceWith(document.importNode(fresh, true));
      return;
    }
    if (node.nodeType !== Node.ELEMENT_NODE) {
      if (node.data !== fresh.data) node.data = fresh.data;
      return;
    }
    // Details that the reader unfolded stay unfolded.
    const theirs = (name) => node.nodeName === "DETAILS" && name === "open";
    for (const {name, value} of fresh.attributes) {
      if (!theirs(name) && node.getAttribute(name) !== value) {
        node.setAttribute(name, value);
      }
    }
    for (const {name} of [...node.attributes]) {
      if (!theirs(name) && !fresh.hasAttribute(name)) node.removeAttribute(name);
    }
    const before = [...node.childNodes];
    const after = [...fresh.childNodes];
    after.forEach((child, at) => {
      if (at < before.length) become(before[at], child);
      else node.append(document.importNode(child, true));
    });
    before.slice(after.length).forEach((child) => child.remove());
  };

  const say = (words, bad) => {
    text.textContent = words;
    pill.classList.toggle("lost", bad);
  };

  const refresh = async () => {
    clearTimeout(timer);
    if (paused || document.hidden) return;
    try {
      const answer = await fetch(location.pathname + "?format=html",
        {cache: "no-store", signal: AbortSignal.timeout(10000)});
      if (!answer.ok) throw new Error(answer.status);
      const page = await answer.text();
      if (paused) return;
      const fresh = new DOMParser().parseFromString(page, "text/html");
      become(document.querySelector("main"), fresh.querySelector("main"));
      say("live", false);
    } catch (error) {
      if (!pill.classList.contains("lost")) {
        say("no answer since " + new Date().toISOString().slice(11, 19) + " UTC",
          true);
      }
    }
    clearTimeout(timer);
    timer = setTimeout(refresh, every);
  };

  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "go on" : "pause";
    pill.classList.toggle("paused", paused);
    say(paused ? "paused" : "live", false);
    refresh();
  });
  document.addEventListener("visibilitychange", refresh);
  say("live", false);
  pill.hidden = false;
  timer = setTimeout(refresh, every);
})();
)";

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_STATUS_PAGE_SCRIPT_H_
