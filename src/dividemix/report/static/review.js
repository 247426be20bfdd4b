// The review: filters, the current sample, and decisions by keyboard, mouse or touch.

const bar = $(".action-bar");
let controls = {};
let status = {};

function select(key, label, options) {
  const change = () => {
    view[key] = element.value;
    refreshGallery();
    showCurrent();
  };
  const element = h("select", { onchange: change }, ...options.map(([value, text]) => h("option", { value }, text)));
  element.value = view[key];
  controls[key] = element;
  return h("label", {}, h("span", {}, label), element);
}

/** The classes that occur in a field of the suspects, with their counts. */
function classOptions(field) {
  const counts = new Map();
  for (const sample of DATA.suspects) counts.set(sample[field], (counts.get(sample[field]) ?? 0) + 1);
  const short = (text) => (text.length > 40 ? `${text.slice(0, 39)}…` : text);
  const classes = [...counts].sort((a, b) => a[0] - b[0]);
  return [["", "any class"], ...classes.map(([label, number]) => [String(label), `${short(className(label))} (${number})`])];
}

function showReview() {
  const anyFlagged = DATA.suspects.some((sample) => sample.flagged);
  if (!anyFlagged) view.state = "all";
  $(".review-lead").textContent = leadText();
  showPages();
  const options = (entries) => Object.entries(entries).map(([value, { name }]) => [value, name]);
  const reset = h("button", { type: "button", class: "quiet", onclick: () => setFilters("", "") }, "Clear filters");
  controls.reset = reset;
  $(".toolbar").append(
    select("given", "Given label", classOptions("given")),
    select("suggested", "Suggested label", classOptions("suggested")),
    select("state", "Show", options(STATES)),
    select("order", "Order", options(ORDERS)),
    reset,
  );
  status.bar = h("progress", { max: 1, value: 0, "aria-label": "Reviewed" });
  status.text = h("span", { class: "progress-text" });
  status.download = h("button", { type: "button", class: "primary", onclick: downloadCorrections }, "Download corrections");
  status.start = h("button", { type: "button", onclick: start }, "Start reviewing");
  const help = h("button", { type: "button", onclick: () => $("#help").showModal() }, "Keys ", h("kbd", {}, "?"));
  status.clear = h("button", { type: "button", class: "quiet", onclick: clearAll }, "Start over");
  status.applied = h("p", { class: "lead saved", role: "status", hidden: true }, "Saved as corrections.csv. To apply it: ", h("code", {}, DATA.apply ?? ""));
  status.note = h("p", { class: "note", role: "alert" }, STORE.note);
  if (DATA.saved_to) {
    $(".review-lead").after(h("p", { class: "lead saved" }, "Decisions are saved to ", h("code", {}, DATA.saved_to), " at once. To apply them: ", h("code", {}, DATA.apply)));
  }
  $(".progress-line").append(
    h("div", { class: "progress-meter" }, status.bar, status.text),
    h("div", { class: "progress-buttons" }, status.start, help, status.clear, status.download),
    status.applied,
    status.note,
  );
  buildBulk();
  buildBar();
  loadDecisions(STORE.load());
  refreshGallery();
  showProgress();
  document.addEventListener("focusin", ({ target }) => {
    const reviews = gallery.contains(target) || bar.contains(target) || Boolean(target.closest("dialog") && !bar.hidden);
    afterClick(() => setReviewing(reviews));
    if (gallery.contains(target)) setCurrent(view.cards.indexOf(target));
  });
  document.addEventListener("mousedown", () => (waiting = []), true);
  for (const end of ["mouseup", "dragend"]) document.addEventListener(end, () => setTimeout(released), true);
  document.addEventListener("keydown", onKey);
  STORE.watch((stored) => repaintAll(() => mergeDecisions(stored)));
}

/** What waits for the end of a click, or null if no button of the mouse is down. */
let waiting = null;

/** Act after the click. A bar that appears between press and release would be under the mouse and lose the click. */
function afterClick(act) {
  if (waiting) waiting.push(act);
  else act();
}

function released() {
  const acts = waiting ?? [];
  waiting = null;
  for (const act of acts) act();
}

function leadText() {
  const [number, first] = [DATA.suspects.length, DATA.first ?? 0];
  const beyond = DATA.num_samples - number;
  let which = `This page has all ${count(number)} samples`;
  if (first) which = `This page has samples ${count(first + 1)} to ${count(first + number)}, by suspicion`;
  else if (beyond > 0) which = `This page has the ${count(number)} most suspicious of ${count(DATA.num_samples)} samples`;
  const numFlagged = DATA.suspects.filter((sample) => sample.flagged).length;
  const rest = !DATA.pages && numFlagged < DATA.num_issues ? `. It has room for ${count(numFlagged)} of the ${count(DATA.num_issues)} flagged ones: “dividemix review” shows all` : "";
  return `${which}${rest}. The networks’ suggestion is not always right: look, then decide.`;
}

/** Links to the other pages of suspects, if the server has more than one. */
function showPages() {
  const pages = DATA.pages ?? [];
  if (pages.length < 2) return;
  const link = ({ first, last, url }) => h("a", { href: url, "aria-current": first === (DATA.first ?? 0) ? "page" : null }, `${count(first + 1)}–${count(last)}`);
  $("#review .lead").after(h("nav", { class: "pages", "aria-label": "Pages of suspects" }, ...pages.map(link)));
}

/** Start or continue the review: the first sample without a decision becomes the current one. */
function start() {
  const open = view.samples.findIndex((sample) => !decisions.has(sample.index));
  focusCard(Math.max(0, open));
}

function setFilters(given, suggested) {
  Object.assign(view, { given: String(given), suggested: String(suggested) });
  for (const key of ["given", "suggested"]) {
    const element = controls[key];
    // A pair of the heat map may have no sample on this page. Then the filter has no option for it yet.
    if (view[key] !== "" && ![...element.options].some((option) => option.value === view[key])) {
      element.append(h("option", { value: view[key] }, `${className(+view[key])} (0)`));
    }
    element.value = view[key];
  }
  refreshGallery();
  showCurrent();
}

/** Show the samples of one pair, from the heat map. */
function showPair(given, suggested) {
  setFilters(given, suggested);
  $("#review").scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  announce(`${count(view.samples.length)} samples given ${className(given)}, suggested ${className(suggested)}`);
  if (view.samples.length) view.cards[0].focus({ preventScroll: true });
  else controls.given.focus({ preventScroll: true });
}

// The current sample.

function setCurrent(position) {
  if (position < 0 || position >= view.samples.length) return;
  const before = view.cards[view.current];
  view.current = position;
  if (before) paint(before);
  showCurrent();
}

/** Move the focus to a card, and make the card if necessary. */
function focusCard(position) {
  const target = Math.min(view.samples.length - 1, Math.max(0, position));
  if (target < 0) return;
  if (target >= view.cards.length) makeCards(target + PAGE_SIZE);
  setCurrent(target);
  if (large.open) return; // the gallery is behind it, and gets the focus back when it closes
  view.cards[target].focus({ preventScroll: true });
  view.cards[target].scrollIntoView({ block: "nearest" });
}

function buildBar() {
  const button = (key, text, action, kind) =>
    h("button", { type: "button", class: kind, onclick: () => act(action) }, text, " ", h("kbd", {}, key));
  status.about = h("div", { class: "about" });
  status.enlarge = h("button", { type: "button", class: "quiet enlarge", onclick: () => (large.open ? large.close() : openLarge()) }, "Enlarge ", h("kbd", {}, "Z"));
  status.accept = button("A", "Accept", "accept", "accept");
  bar.append(
    status.about,
    h(
      "div",
      { class: "actions" },
      button("K", "Keep", "keep", "keep"),
      status.accept,
      button("C", "Choose…", "choose"),
      button("D", "Delete", "delete"),
      button("M", "Ambiguous", "ambiguous"),
      button("S", "Skip", "skip"),
      button("U", "Undo", "undo", "quiet"),
      status.enlarge,
    ),
  );
}

/** Show the bar while a card or the bar itself has the focus, else hide it. */
function setReviewing(isReviewing) {
  bar.hidden = !isReviewing;
  document.body.classList.toggle("reviewing", isReviewing);
}

/** Repaint the current card and show its details in the bar at the bottom. */
function showCurrent() {
  controls.reset.disabled = view.given === "" && view.suggested === "";
  const sample = view.samples[view.current];
  const element = view.cards[view.current];
  if (element) paint(element);
  if (!sample) setReviewing(false);
  if (bar.hidden) return;
  showLarge();
  status.accept.disabled = sample.suggested === sample.given;
  const likely = sample.likely.flatMap(([label, prob], i) => [i ? " · " : "", name(className(label)), ` ${percent(prob)}`]);
  const numbers = (values, digits) => values.map((value) => decimals(value, digits)).join(", ");
  status.about.replaceChildren(
    h("p", { class: "pair" }, name(className(sample.given), "given"), " → ", name(className(sample.suggested), "suggested")),
    h("p", {}, "Networks: ", ...likely),
    h("p", { class: "faint" }, `#${sample.index} · clean probability ${numbers(sample.clean_prob, 2)} · loss ${numbers(sample.loss, 2)}`),
  );
}

// Deciding.

function act(action) {
  const sample = view.samples[view.current];
  if (action === "undo") return undo();
  if (!sample) return undefined;
  const [given, suggested] = [className(sample.given), className(sample.suggested)];
  if (action === "keep") return settle(sample, "keep", given);
  if (action === "accept") {
    if (sample.given !== sample.suggested) return settle(sample, "accept", suggested);
    return announce("The suggestion is the given label: keep it, or choose another class.");
  }
  if (action !== "choose") return settle(sample, action, "");
  return chooseClass(sample, (chosen) =>
    settle(sample, chosen === given ? "keep" : chosen === suggested ? "accept" : "choose", chosen),
  );
}

function settle(sample, action, label) {
  decide([[sample.index, { action, label }]]);
  showProgress();
  paint(view.cards[view.current]);
  const { done, total: all } = progress();
  announce(`${decisionText({ action, label })}. ${count(done)} of ${count(all)} reviewed.`);
  if (view.current + 1 < view.samples.length) focusCard(view.current + 1);
  else {
    focusCard(view.current);
    announce(`That was the last one shown. ${count(done)} of ${count(all)} reviewed.`);
  }
}

function undo() {
  const undone = undoDecision();
  if (!undone.length) return announce("There is nothing to undo.");
  showProgress();
  view.cards.forEach(paint);
  const position = view.samples.findIndex((sample) => sample.index === undone[0]);
  if (position >= 0) focusCard(position);
  return announce(undone.length === 1 ? `Undone: sample ${undone[0]}.` : `Undone: ${count(undone.length)} decisions.`);
}

function clearAll() {
  if (confirm(`Delete all ${count(decisions.size)} decisions? Download them first if you need them.`)) repaintAll(clearDecisions);
}

function repaintAll(change) {
  change();
  view.cards.forEach(paint);
  showProgress();
}

/** How many are reviewed, out of those that are flagged or reviewed (out of all, if none is flagged). */
function progress() {
  const any = DATA.suspects.some((sample) => sample.flagged);
  const pool = DATA.suspects.filter((sample) => !any || sample.flagged || decisions.has(sample.index));
  return { done: pool.filter((sample) => decisions.has(sample.index)).length, total: pool.length };
}

function showProgress() {
  const { done, total } = progress();
  status.bar.max = Math.max(1, total);
  status.bar.value = done;
  status.text.textContent = `${count(done)} of ${count(total)} reviewed`;
  status.download.disabled = done === 0;
  status.clear.disabled = done === 0;
  status.start.textContent = done ? "Continue" : "Start reviewing";
  status.start.disabled = !view.samples.length;
  status.note.hidden = STORE.works;
  showBulk();
}

const KEYS = { k: "keep", a: "accept", c: "choose", d: "delete", m: "ambiguous", s: "skip", u: "undo" };

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]:not(#large)")) return;
  const target = event.target;
  if (target.matches("select, textarea, input:not([type=range], [type=radio])")) return;
  if (event.key === "?") {
    event.preventDefault();
    $("#help").showModal();
    return;
  }
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (key === "u" && bar.hidden && (target === document.body || $("#review").contains(target))) {
    event.preventDefault();
    undo();
    return;
  }
  if (key === "j" && (large.open || target === document.body || bar.contains(target) || $("#review").contains(target))) {
    event.preventDefault();
    focusCard(bar.hidden ? view.current : view.current + 1);
    return;
  }
  if (bar.hidden) return;
  if (key in KEYS) {
    event.preventDefault();
    act(KEYS[key]);
    return;
  }
  if (key === "z" || (key === "Enter" && gallery.contains(target))) {
    event.preventDefault();
    if (large.open) large.close();
    else openLarge();
    return;
  }
  if (!gallery.contains(target) && !large.open) return;
  const row = large.open ? 1 : numColumns();
  const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: row, ArrowUp: -row, Home: -Infinity, End: Infinity }[key];
  if (by === undefined) return;
  event.preventDefault();
  const isAboveFirst = key === "ArrowUp" && view.current + by < 0;
  if (!isAboveFirst) focusCard(view.current + by);
}
