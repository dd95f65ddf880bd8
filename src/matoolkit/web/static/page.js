// What every page does by itself: keeps live parts fresh, says how fresh they are, and shows refusals where they belong.
"use strict";
(() => {
  const STALE = 30, NOTE = 60; // seconds without a word from the server
  const frame = document.getElementById("live");
  const said = frame.querySelector("span"), pause = frame.querySelector("button");
  let heardAt = Date.now(), paused = false;
  const waiting = new Map(); // parts that changed while somebody was in them

  // An EventSource that can be closed and opened again with the same listeners. Tabs that nobody sees are closed: a
  // browser has few connections for one server.
  class Reopening {
    constructor(url) { this.url = url; this.listeners = []; this.open(); }
    open() {
      this.inner = new EventSource(this.url);
      const inner = this.inner;
      inner.onopen = (event) => { heard(); signedIn(); this.onopen?.(event); };
      inner.onerror = (event) => { if (inner.readyState === EventSource.CLOSED) ask(this.url); this.onerror?.(event); };
      this.inner.addEventListener("beat", heard);
      for (const [name, listener] of this.listeners) this.inner.addEventListener(name, listener);
    }
    addEventListener(name, listener) { this.listeners.push([name, listener]); this.inner.addEventListener(name, listener); }
    removeEventListener(name, listener) {
      this.listeners = this.listeners.filter(([n, l]) => n !== name || l !== listener);
      this.inner.removeEventListener(name, listener);
    }
    close() { this.inner.close(); }
    get readyState() { return this.inner.readyState; }
  }
  let source = null;
  htmx.createEventSource = (url) => {
    source?.close();
    source = new Reopening(url);
    window.matoolkitEvents = source;
    document.dispatchEvent(new Event("matoolkit:events"));
    return source;
  };
  const wanted = () => !paused && document.visibilityState === "visible";
  const follow = () => {
    if (!source) return;
    if (wanted() && source.readyState === EventSource.CLOSED) source.open();
    if (!wanted()) source.close();
    tell();
  };
  document.addEventListener("visibilitychange", follow);
  window.addEventListener("pagehide", () => source?.close());
  window.addEventListener("pageshow", (event) => { if (event.persisted) follow(); });

  // A stream that is refused does not say why. So the page asks, and says if nobody is signed in any more.
  const refused = document.getElementById("refused");
  async function ask(url) {
    const answer = await fetch(`${url}?part=places`, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (answer?.status !== 401 || refused.dataset.by) return;
    refused.innerHTML = await answer.text();
    refused.dataset.by = "stream";
  }
  function signedIn() {
    if (!refused.dataset.by) return;
    delete refused.dataset.by;
    refused.replaceChildren();
  }

  function heard() { heardAt = Date.now(); tell(); }

  function tell() {
    if (frame.dataset.state === "still") return;
    const age = Math.round((Date.now() - heardAt) / 1000), stale = age >= STALE && !paused;
    frame.dataset.state = paused ? "paused" : stale ? "stale" : source ? "live" : "polling";
    const ago = age < 60 ? `${age} s` : `${Math.floor(age / 60)} min`;
    const text = paused ? `paused, ${ago} old` : stale ? `no answer for ${ago}` : source ? `live, ${age < 5 ? "just now" : `${ago} old`}` : `asks every 5 s`;
    if (said.textContent !== text) said.textContent = text;
    const note = document.getElementById("stale");
    if (age >= NOTE && stale && !note) {
      const made = Object.assign(document.createElement("p"), { id: "stale", className: "note held" });
      made.setAttribute("role", "status");
      made.textContent = "The server has not answered for a minute. What you see is as it was then; the page goes on by itself when the server answers, or load it again.";
      document.getElementById("main").prepend(made);
    } else if (!stale && note) note.remove();
  }
  if (pause) {
    pause.hidden = false;
    pause.addEventListener("click", () => { paused = !paused; pause.textContent = paused ? "go on" : "pause"; follow(); });
  }
  if (frame.dataset.state !== "still") setInterval(tell, 1000);

  // A part in which somebody is at work is not replaced under their hands.
  const busy = (part) => part.querySelector("form") || (part.contains(document.activeElement) && document.activeElement !== part);
  const offer = () => {
    let button = document.getElementById("changes");
    if (!waiting.size) return button?.remove();
    if (!button) {
      button = Object.assign(document.createElement("button"), { id: "changes", className: "link", type: "button" });
      button.addEventListener("click", () => {
        for (const [part, html] of waiting) htmx.swap(part, html, { swapStyle: "innerHTML" });
        waiting.clear();
        offer();
      });
      frame.append(" · ", button);
    }
    button.textContent = `${waiting.size} ${waiting.size === 1 ? "change" : "changes"}, show`;
  };
  document.addEventListener("htmx:sseBeforeMessage", (event) => {
    const part = event.target, html = event.detail.data;
    if (part.matter === html) return event.preventDefault(); // the same as before, after the stream was opened again
    part.matter = html;
    if (busy(part)) { waiting.set(part, html); event.preventDefault(); offer(); } else { waiting.delete(part); offer(); }
  });
  const figures = new Map(); // a changed figure is tinted
  const note = (root) => {
    for (const one of root.querySelectorAll("[data-figure]")) {
      const before = figures.get(one.dataset.figure), now = one.textContent.trim();
      if (before !== undefined && before !== now) one.classList.add("changed");
      figures.set(one.dataset.figure, now);
    }
    const title = root.querySelector("[data-title]");
    if (title) document.title = `${title.dataset.title} · matoolkit`;
    const nav = document.querySelector(".top nav");
    for (const link of nav.querySelectorAll("[data-place]")) {
      if (link.dataset.place === nav.dataset.place) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
    }
  };
  document.addEventListener("htmx:afterSettle", (event) => note(event.target));
  note(document);
  // On a narrow screen the places are scrolled, and the one we are at is in sight.
  document.querySelector(".top nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

  const byItself = (part) => part.getAttribute("hx-trigger")?.startsWith("every");
  // While pages ask instead of being sent, a part with a form in it waits too.
  document.addEventListener("htmx:beforeRequest", (event) => {
    const asked = event.detail.elt;
    if (byItself(asked) && (busy(asked) || document.visibilityState !== "visible")) event.preventDefault();
  });
  document.addEventListener("htmx:afterRequest", (event) => { if (event.detail.successful) { heard(); if (byItself(event.detail.elt)) signedIn(); } });

  // A refusal is shown where the form has a place for it, and the form keeps its text.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, elt } = event.detail;
    if (xhr.status < 400 || xhr.getResponseHeader("HX-Retarget")) return;
    const place = elt.closest("form")?.querySelector(".refused") ?? elt.querySelector?.(".refused") ?? document.getElementById("refused");
    event.detail.target = place;
    event.detail.swapOverride = "innerHTML";
    event.detail.shouldSwap = true;
    // What nobody asked for takes nobody's place away, and goes when it is no longer true.
    if (byItself(elt)) place.dataset.by = "polling"; else setTimeout(() => place.focus());
  });
  document.addEventListener("htmx:beforeRequest", (event) => {
    for (const place of event.detail.elt.querySelectorAll?.(".refused") ?? []) place.replaceChildren();
  });
  document.addEventListener("htmx:sendError", () => {
    document.getElementById("refused").textContent = "The server did not answer. Nothing is known of what was asked for; load the page again to see.";
  });

  // What was opened on demand is gone on with from the keyboard, and left to where it was opened.
  const openers = new Map(); // what a box was asked for with, by its id; the link itself may be a new one by then
  document.addEventListener("htmx:afterSettle", (event) => {
    const box = event.detail.target, opener = document.activeElement;
    if (!box?.id || opener?.getAttribute("hx-target") !== `#${box.id}`) return;
    openers.set(box.id, opener.getAttribute("hx-get"));
    box.tabIndex = -1;
    box.focus({ preventScroll: true });
  });

  // Closing what was opened on demand, and finding by keyboard.
  document.addEventListener("click", (event) => {
    const close = event.target.closest("[data-close]");
    if (!close) return;
    event.preventDefault();
    const box = close.closest(close.dataset.close), links = [...document.querySelectorAll(`[hx-target="#${box.id}"]`)];
    box.replaceChildren();
    (links.find((one) => one.getAttribute("hx-get") === openers.get(box.id)) ?? links[0])?.focus();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    event.preventDefault();
    document.querySelector(".find input").focus();
  });
})();
