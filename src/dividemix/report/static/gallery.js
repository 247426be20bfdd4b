// The gallery: which samples are shown, and in which order. Cards are made a few at a time, so that what is below the
// gallery can be reached.

const PAGE_SIZE = 60;

const ORDERS = {
  score: { name: "most suspicious first", compare: (a, b) => a.score - b.score },
  confidence: { name: "most confident suggestion first", compare: (a, b) => b.likely[0][1] - a.likely[0][1] },
  class: { name: "by given class", compare: (a, b) => a.given - b.given || a.score - b.score },
};
const STATES = {
  flagged: { name: "flagged", holds: (sample) => sample.flagged },
  open: { name: "flagged, not yet reviewed", holds: (sample) => sample.flagged && !decisions.has(sample.index) },
  other: { name: "not flagged, another label suggested", holds: (sample) => !sample.flagged && sample.suggested !== sample.given },
  done: { name: "reviewed", holds: (sample) => decisions.has(sample.index) },
  all: { name: "all on this page", holds: () => true },
};

/** What is shown: filters, order, the matching samples, the cards made so far, and the current one. */
const view = { given: "", suggested: "", state: "flagged", order: "score", samples: [], cards: [], current: 0 };

const gallery = $(".gallery");
const end = $(".gallery-end");

/** Apply filters and order. Later decisions move nothing until this is called again. */
function refreshGallery() {
  view.samples = DATA.suspects
    .filter((sample) => view.given === "" || sample.given === +view.given)
    .filter((sample) => view.suggested === "" || sample.suggested === +view.suggested)
    .filter(STATES[view.state].holds)
    .sort(ORDERS[view.order].compare);
  view.cards = [];
  view.current = 0;
  gallery.replaceChildren();
  makeCards(PAGE_SIZE);
  showBulk();
}

/** Make cards up to this many. */
function makeCards(number) {
  const more = view.samples.slice(view.cards.length, number).map(card);
  view.cards.push(...more);
  gallery.append(...more);
  const elsewhere = DATA.num_samples > DATA.suspects.length ? " label_issues.csv lists every sample." : "";
  const left = view.samples.length - view.cards.length;
  const grow = () => {
    const next = view.cards.length;
    makeCards(next + 2 * PAGE_SIZE);
    view.cards[next].focus({ preventScroll: true });
  };
  const button = h("button", { type: "button", onclick: grow }, `Show ${count(Math.min(left, 2 * PAGE_SIZE))} more`);
  if (left) end.replaceChildren(`${count(view.cards.length)} of ${count(view.samples.length)} are shown. `, button);
  else if (view.samples.length) end.replaceChildren(`All ${count(view.samples.length)} are shown.${elsewhere}`);
  else end.replaceChildren(`No sample on this page matches the filters.${elsewhere}`);
}

/** What the card shows, in words for screen readers. */
function cardLabel(sample) {
  const decision = decisions.get(sample.index);
  const words = [`Sample ${sample.index}`, `given ${className(sample.given)}`, `suggested ${className(sample.suggested)}`];
  words.push(`${percent(sample.likely[0][1])} sure`);
  if (decision) words.push(decisionText(decision));
  return words.join(", ");
}

const DONE = { keep: "kept", accept: "accepted", choose: "changed", skip: "skipped", delete: "deleted", ambiguous: "ambiguous" };
const decisionText = ({ action, label }) => (action === "choose" ? `changed to ${label}` : DONE[action]);

function card(sample) {
  const share = (prob, title) => h("span", { class: "share", title }, percent(prob));
  const line = (term, ...content) => h("span", { class: "line" }, h("span", { class: "term" }, term), ...content);
  const agrees = sample.suggested === sample.given;
  const element = h(
    "li",
    { class: "card", role: "option", tabindex: -1 },
    h("span", { class: sample.shown?.kind === "image" ? "picture" : "picture words", onclick: openLarge }, showSample(sample, "small")),
    line("given", name(className(sample.given), "given"), share(sample.score, "the probability that the given label is right")),
    line(
      "suggested",
      agrees ? h("span", { class: "muted" }, "the same") : name(className(sample.suggested), "suggested"),
      share(sample.likely[0][1], "how sure the suggestion is"),
    ),
    sample.true === null ? null : line("true", name(className(sample.true), "true")),
    sample.path !== null ? name(sample.path, "path") : sample.shown ? name(`index ${sample.index}`, "path") : null,
    h("span", { class: "decision" }),
  );
  element.sample = sample;
  paint(element);
  return element;
}

/** Show a card's decision, and whether it is the current one. */
function paint(element) {
  const decision = decisions.get(element.sample.index);
  element.dataset.action = decision?.action ?? "";
  $(".decision", element).replaceChildren(
    ...(!decision ? [] : decision.action === "choose" ? ["→ ", name(decision.label)] : [DONE[decision.action]]),
  );
  element.setAttribute("aria-label", cardLabel(element.sample));
  const isCurrent = view.samples[view.current] === element.sample;
  element.tabIndex = isCurrent ? 0 : -1;
  element.setAttribute("aria-selected", isCurrent);
}

/** The number of cards in a row of the current layout. */
function numColumns() {
  const [first] = view.cards;
  const below = view.cards.findIndex((element) => element.offsetTop > first.offsetTop);
  return below < 0 ? view.cards.length : below;
}
