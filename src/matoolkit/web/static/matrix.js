// The matrix of a batch: every member times every step. Above is a picture of all members, below a window of rows with keys.
//
// The server sends a head and a byte for each cell, step by step and within a step member by member: low four bits the
// state, high four the attempts. What a state looks like and how it is called stands in the legend of the page. Members
// go by their places among all; keys and numbers are asked for as they come into sight.
"use strict";
(() => {
  const ROW = 20, GAP = 6, MARGIN = 20; // heights of a row, between phases in the picture, and rows asked for beyond sight
  const MOST_KEYS = 200, PAUSE = 350, AGAIN = 5000, NARROW = 700;
  const FAILED = [5, 6], SUCCEEDED = 4, STATES = 16;
  const id = (name) => document.getElementById(`mx-${name}`);
  const box = document.getElementById("matrix");
  const [all, cells, frame, room, said, story] = ["all", "cells", "window", "room", "say", "story"].map(id);
  const [found, order, only, search] = ["found", "order", "only", "search"].map(id);
  const whole = new Intl.NumberFormat("en");
  const plural = (number, noun) => `${whole.format(number)} ${noun}${number === 1 ? "" : "s"}`;

  // ---- What there is ----
  let columns = [], members = 0, bytes = new Uint8Array(0), version = "";
  const keys = new Map(); // place -> {id, key}, of those that were in sight
  const stateAt = (member, column) => bytes[column * members + member] & 15;
  const attemptsAt = (member, column) => bytes[column * members + member] >> 4;
  const isFailed = (member, column) => FAILED.includes(stateAt(member, column));

  async function ask(what, query = {}, signal = undefined) {
    const address = new URL(`${box.dataset.of}/matrix/${what}`, location);
    for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value);
    const answer = await fetch(address, { signal, headers: { "hx-request": "true" } }); // a refusal comes as a part, not a page
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    return answer;
  }

  // Asks for what is new, one question at a time: what becomes new meanwhile is asked for afterwards.
  let asking = false, askAgain = false;
  async function refresh() {
    askAgain = true;
    if (asking) return;
    asking = true;
    while (askAgain) {
      askAgain = false;
      const buffer = await ask("cells", version ? { since: version } : {}).then((answer) => answer.arrayBuffer()).catch(() => null);
      if (buffer) take(buffer);
      else { // the server is away: a page that is open for forty hours goes on when it is back
        if (!version) found.textContent = "not answered, the page asks again";
        await new Promise((done) => setTimeout(done, AGAIN));
        askAgain = true;
      }
    }
    asking = false;
  }

  function take(buffer) {
    const arrived = performance.now();
    const length = new DataView(buffer).getUint32(0, true), body = buffer.slice(4 + length);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    version = head.version;
    if (head.columns) replace(head, new Uint8Array(body)); else change(new Uint32Array(body));
    if (head.columns || head.changes) choose();
    drawNow();
    performance.measure(head.columns ? "matrix-drawn" : "matrix-changed", { start: arrived });
  }
  function replace(head, received) {
    openAtFailure = !columns.length;
    ({ columns, members } = head);
    bytes = received;
    keys.clear();
  }
  function change(changes) { // the cell above, its new byte below
    for (const one of changes) bytes[one >>> 8] = one & 255;
    pictureIsOld = true;
  }

  // ---- Who is shown, and in which order ----
  let rows = new Uint32Array(0), at = { row: 0, column: 0 }, openAtFailure = false, searched = null;
  function choose() {
    const member = rows.length ? rows[at.row] : 0; // stays where it is, whatever is before it now
    rows = sorted(filtered());
    const count = searched && searched.count > searched.places.length ? `, of ${whole.format(searched.count)} found` : "";
    found.textContent = `${whole.format(rows.length)} of ${plural(members, "member")}${count}`;
    fitRoom();
    pictureIsOld = true;
    const row = rows.indexOf(member);
    at = { row: Math.max(0, row), column: Math.min(at.column, Math.max(columns.length - 1, 0)) };
    if (openAtFailure) { openAtFailure = false; nextFailure(true); }
    tell(false);
  }
  const fitRoom = () => { room.style.height = `${Math.max(0, rows.length * ROW - frame.clientHeight + heading())}px`; };
  function filtered() {
    const wanted = new Uint8Array(members).fill(searched ? 0 : 1);
    for (const place of searched?.places ?? []) wanted[place] = 1;
    if (only.value !== "") {
      const state = Number(only.value), has = new Uint8Array(members);
      for (let c = 0; c < columns.length; c++) for (let m = 0; m < members; m++) if (stateAt(m, c) === state) has[m] = 1;
      for (let m = 0; m < members; m++) wanted[m] &= has[m];
    }
    let count = 0;
    const chosen = new Uint32Array(members);
    for (let m = 0; m < members; m++) if (wanted[m]) chosen[count++] = m;
    return chosen.subarray(0, count);
  }
  function sorted(chosen) {
    if (order.value === "source") return chosen;
    const byFailure = order.value === "failed", rank = new Uint16Array(members).fill(columns.length);
    for (let c = columns.length - 1; c >= 0; c--) {
      for (let m = 0; m < members; m++) {
        if (byFailure) { if (isFailed(m, c)) rank[m] = c; } else if (stateAt(m, c) === SUCCEEDED) rank[m]--;
      }
    }
    const ranked = Array.from({ length: columns.length + 1 }, () => []);
    for (const m of chosen) ranked[rank[m]].push(m);
    return Uint32Array.from(ranked.flat());
  }

  let typing = 0;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(async () => {
      const text = search.value.trim();
      try {
        const answer = text ? await (await ask("find", { key: text })).json() : null;
        if (text === search.value.trim()) searched = answer; // or else more was typed meanwhile
      } catch { found.textContent = "The search was not answered."; return; }
      choose(); draw();
    }, 250);
  });
  for (const control of [order, only]) control.addEventListener("input", () => { choose(); draw(); });

  // ---- How it looks ----
  // Colours come from the stylesheet, through the legend: a change of theme just draws again.
  const signs = []; // by the number of a state
  let paper, ink, ring, font;
  function readSigns() {
    for (const swatch of id("legend").querySelectorAll("[data-code]")) {
      const style = getComputedStyle(swatch);
      signs[swatch.dataset.code] = { fill: style.backgroundColor, mark: style.color, glyph: swatch.textContent, word: swatch.nextElementSibling.textContent };
    }
    ({ backgroundColor: paper, color: ink, outlineColor: ring } = getComputedStyle(all));
    font = getComputedStyle(document.body).fontFamily;
    pictureIsOld = true;
  }

  const isNarrow = () => box.clientWidth < NARROW;
  const keyWidth = () => (isNarrow() ? 128 : 250);
  const nameWidth = () => (isNarrow() ? 0 : 150); // of steps, beside the picture
  const cellWidth = () => (frame.clientWidth - keyWidth()) / columns.length;
  const isUpright = () => cellWidth() < 56; // the names of steps stand upright where there is no room
  const heading = () => (isUpright() ? 116 : 44);
  const inSight = () => Math.max(1, Math.floor((frame.clientHeight - heading()) / ROW));

  function pen(canvas, width, height) { // sharp on every screen; the size on the page never changes
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = paper;
    context.fillRect(0, 0, width, height);
    context.textBaseline = "middle";
    context.font = `11px ${font}`;
    return context;
  }
  function cut(context, text, width) {
    if (context.measureText(text).width <= width) return text;
    let length = text.length;
    while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length -= Math.ceil(length / 20);
    return `${text.slice(0, length)}…`;
  }

  // The picture of all is kept: it is drawn again when cells, rows, colours or sizes are others, not at every move.
  const picture = document.createElement("canvas");
  let pictureIsOld = true;
  function drawPicture() {
    const width = all.clientWidth, height = all.clientHeight, left = nameWidth(), wide = width - left;
    const context = pen(picture, width, height);
    const gaps = columns.filter((column, c) => c && column.phase !== columns[c - 1].phase).length;
    const high = Math.max(1, Math.floor((height - gaps * GAP) / Math.max(columns.length, 1)));
    let y = 0;
    columns.forEach(({ phase, step }, c) => {
      if (c && phase !== columns[c - 1].phase) y += GAP;
      context.fillStyle = ink;
      if (left && high >= 9) context.fillText(cut(context, step, left - 8), 0, y + high / 2);
      drawStrip(context, c, left, y, wide, high);
      y += high;
    });
  }
  // A column of pixels is one member or several: their most common state, and every failure, wider and taller than the
  // rest, so that one among 100,000 is seen, and by its shape too.
  function drawStrip(context, column, left, y, wide, high) {
    const tally = new Uint32Array(STATES), failures = [], count = rows.length, base = column * members;
    let run = -1, begun = 0;
    const flush = (x) => { if (run >= 0) { context.fillStyle = signs[run].fill; context.fillRect(left + begun, y, x - begun, high - 1); } };
    for (let x = 0; count && x < wide; x++) {
      const from = Math.floor((x * count) / wide), to = Math.max(from + 1, Math.floor(((x + 1) * count) / wide));
      tally.fill(0);
      for (let row = from; row < to; row++) tally[bytes[base + rows[row]] & 15]++;
      if (FAILED.some((state) => tally[state])) failures.push(x);
      let most = 0;
      for (let state = 1; state < STATES; state++) if (tally[state] > tally[most]) most = state;
      if (most !== run) { flush(x); run = most; begun = x; }
    }
    flush(wide);
    context.fillStyle = signs[FAILED[0]].fill;
    for (const x of failures) context.fillRect(left + x - 1, y - 1, 3, high + 1);
  }
  function drawAll() {
    if (pictureIsOld) { drawPicture(); pictureIsOld = false; }
    const width = all.clientWidth, height = all.clientHeight, context = pen(all, width, height);
    context.drawImage(picture, 0, 0, width, height);
    if (!rows.length) return;
    const left = nameWidth(), wide = width - left, top = frame.scrollTop / ROW / rows.length;
    context.strokeStyle = ring;
    context.lineWidth = 2; // where the window is
    context.strokeRect(left + top * wide, 1, Math.min(wide - 1, Math.max(4, (inSight() / rows.length) * wide)), height - 2);
  }

  function drawWindow() {
    const width = frame.clientWidth, height = frame.clientHeight, context = pen(cells, width, height);
    if (!columns.length) return;
    const left = keyWidth(), wide = cellWidth(), head = heading(), first = Math.floor(frame.scrollTop / ROW);
    const last = Math.min(rows.length, Math.ceil((frame.scrollTop + height - head) / ROW));
    context.save();
    context.beginPath();
    context.rect(0, head, width, height - head);
    context.clip();
    for (let row = first; row < last; row++) drawRow(context, row, head + row * ROW - frame.scrollTop, left, wide);
    context.restore();
    drawNames(context, left, wide, head);
    learn(first - MARGIN, last + MARGIN);
  }
  function drawRow(context, row, y, left, wide) {
    const member = rows[row];
    context.fillStyle = ink;
    context.textAlign = "left";
    context.fillText(cut(context, keys.get(member)?.key ?? "…", left - 8), 0, y + ROW / 2);
    context.textAlign = "center";
    for (let c = 0; c < columns.length; c++) {
      const { fill, mark, glyph } = signs[stateAt(member, c)], attempts = attemptsAt(member, c), x = left + c * wide;
      context.fillStyle = fill;
      context.fillRect(x + 1, y, Math.max(1, wide - 2), ROW - 1);
      if (wide < 11) continue;
      context.fillStyle = mark;
      context.fillText(attempts > 1 && wide >= 36 ? `${glyph} ${counted(attempts)}` : glyph, x + wide / 2, y + ROW / 2);
    }
    if (row !== at.row) return;
    context.strokeStyle = ring;
    context.lineWidth = 2;
    context.strokeRect(left + at.column * wide, y, wide, ROW - 1);
  }
  function drawNames(context, left, wide, head) {
    context.fillStyle = ink;
    context.textAlign = "left";
    columns.forEach(({ phase, step }, c) => {
      const x = left + c * wide, begins = !c || phase !== columns[c - 1].phase;
      if (begins) context.fillRect(Math.round(x), 0, 1, head);
      if (isUpright()) {
        context.save();
        context.translate(x + wide / 2, head - 4);
        context.rotate(-Math.PI / 2);
        context.fillText(cut(context, step, head - 8), 0, 0);
        context.restore();
        return;
      }
      if (begins) {
        const end = columns.findIndex((other, o) => o > c && other.phase !== phase);
        context.font = `600 11px ${font}`;
        context.fillText(cut(context, phase, ((end < 0 ? columns.length : end) - c) * wide - 8), x + 4, 8);
        context.font = `11px ${font}`;
      }
      const words = step.split("-"), half = Math.ceil(words.length / 2), rest = words.slice(half).join("-");
      context.fillText(cut(context, words.slice(0, half).join("-") + (rest && "-"), wide - 6), x + 4, 22);
      context.fillText(cut(context, rest, wide - 6), x + 4, 34);
    });
  }
  const counted = (attempts) => (attempts === 15 ? "15+" : attempts);

  let asked = 0;
  const draw = () => { asked ||= requestAnimationFrame(drawNow); };
  function drawNow() {
    cancelAnimationFrame(asked);
    asked = 0;
    drawAll();
    drawWindow();
  }

  // ---- Keys of those in sight ----
  let learning = 0;
  function learn(from, to) {
    clearTimeout(learning);
    const near = Array.from(rows.subarray(Math.max(0, from), to)), unknown = near.filter((member) => !keys.has(member)).slice(0, MOST_KEYS);
    if (unknown.length) learning = setTimeout(() => keysOf(unknown).then(() => { tell(false); draw(); }, () => {}), 60);
  }
  async function keysOf(places) {
    const answer = await (await ask("members", { places: places.join(",") })).json();
    for (const { place, id: number, key } of answer.members) keys.set(place, { id: number, key });
  }

  // ---- Where one is, in words ----
  let pausing = 0, asksStory = null;
  function tell(isMove = true) {
    const text = words();
    if (said.textContent === text && !isMove) return;
    if (said.textContent !== text) said.textContent = text;
    clearTimeout(pausing);
    asksStory?.abort();
    if (isMove) story.replaceChildren();
    if (rows.length && columns.length) pausing = setTimeout(tellStory, PAUSE);
  }
  function words() {
    if (!columns.length) return version ? "This batch has no phases." : "";
    if (!rows.length) return "Nobody matches. Clear the filter to see all.";
    const member = rows[at.row], { phase, step } = columns[at.column], attempts = attemptsAt(member, at.column);
    const { glyph, word } = signs[stateAt(member, at.column)];
    return `${alone(keys.get(member)?.key ?? "…")} · ${phase} / ${step} · ${glyph} ${word}${attempts ? `, attempt ${counted(attempts)}` : ""} · row ${whole.format(at.row + 1)}`;
  }
  // A key of another script must not turn the words around it.
  const alone = (key) => (/^[ -~]*$/.test(key) ? key : `\u2068${key}\u2069`);
  async function tellStory() {
    asksStory = new AbortController();
    const { signal } = asksStory;
    try {
      const told = await (await ask("story", { place: rows[at.row], column: at.column }, signal)).text();
      if (!signal.aborted) story.innerHTML = told; // our own template, which escapes what comes from elsewhere
    } catch { /* moved on, or not answered: the line above stands */ }
  }

  // ---- Moving ----
  const within = (value, most) => Math.min(Math.max(value, 0), Math.max(most, 0));
  function move(row, column, isFar = false) {
    if (isFar) frame.scrollTop = (row - Math.floor(inSight() / 2)) * ROW;
    at = { row: within(row, rows.length - 1), column: within(column, columns.length - 1) };
    const lowest = (at.row + 1) * ROW - (frame.clientHeight - heading());
    frame.scrollTop = Math.min(Math.max(frame.scrollTop, lowest), at.row * ROW);
    tell();
    draw();
  }
  function nextFailure(fromHere = false) {
    const start = at.row * columns.length + at.column + (fromHere ? 0 : 1), cellsShown = rows.length * columns.length;
    for (let step = 0; step < cellsShown; step++) {
      const one = (start + step) % cellsShown, row = Math.floor(one / columns.length), column = one % columns.length;
      if (isFailed(rows[row], column)) return move(row, column, row !== at.row);
    }
    if (!fromHere) said.textContent = "No failure among these members.";
  }
  async function open(row) {
    const member = rows[row];
    if (member === undefined) return;
    if (!keys.has(member)) await keysOf([member]);
    location.assign(`${box.dataset.of}/members/${keys.get(member).id}`);
  }
  frame.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = inSight(), end = rows.length;
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-page, 0], PageDown: [page, 0], Home: [-end, 0], End: [end, 0] };
    const go = steps[event.key];
    if (go) move(at.row + go[0], at.column + go[1]);
    else if (event.key === "n") nextFailure(); else if (event.key === "Enter") open(at.row); else return;
    event.preventDefault();
  });
  function spot(event) { // the row and the column under the pointer; the keys are column -1
    const row = Math.floor((event.offsetY - heading() + frame.scrollTop) / ROW), x = event.offsetX - keyWidth();
    return event.offsetY >= heading() && row < rows.length && columns.length ? { row, column: x < 0 ? -1 : within(Math.floor(x / cellWidth()), columns.length - 1) } : null;
  }
  cells.addEventListener("pointermove", (event) => {
    const here = spot(event);
    cells.style.cursor = here?.column === -1 ? "pointer" : "";
    if (here && here.column >= 0 && (here.row !== at.row || here.column !== at.column)) { at = here; tell(); draw(); }
  });
  cells.addEventListener("click", (event) => {
    const here = spot(event);
    if (here?.column === -1) open(here.row); else if (here) move(here.row, here.column);
  });
  frame.addEventListener("scroll", draw, { passive: true });
  all.addEventListener("click", (event) => {
    const share = (event.offsetX - nameWidth()) / (all.clientWidth - nameWidth());
    const row = within(Math.floor(share * rows.length), rows.length - 1);
    move(row, at.column, true);
    frame.focus({ preventScroll: true });
  });

  // ---- Staying true ----
  const restyle = () => { readSigns(); draw(); };
  new MutationObserver(restyle).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
  new ResizeObserver(() => { pictureIsOld = true; fitRoom(); draw(); }).observe(box);
  let followed = null;
  function follow() { // the stream of the page says which version there is
    const events = window.matoolkitEvents;
    if (!events || events === followed) return;
    followed = events;
    events.addEventListener("matrix", (event) => { if (event.data && event.data !== version) refresh(); });
  }
  document.addEventListener("matoolkit:events", follow);
  const asks = Number(box.dataset.asks); // seconds, where nothing can be streamed
  if (asks) setInterval(() => { if (document.visibilityState === "visible") refresh(); }, asks * 1000);
  readSigns();
  follow();
  refresh();
})();
