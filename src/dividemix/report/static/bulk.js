// Decisions on many samples at once: only on those that are shown and have none yet. One undo takes them all back.

const LIMITS = [95, 90, 80, 70, 60, 50];
const bulk = {};

function buildBulk() {
  bulk.text = h("span", {});
  bulk.accept = h("button", { type: "button", onclick: () => decideShown("accept", 0) }, "");
  bulk.keep = h("button", { type: "button", onclick: () => decideShown("keep", 0) }, "Keep all");
  bulk.limit = h("input", { type: "number", min: 0, max: 100, step: "any", value: firstLimit(), "aria-label": "At least this sure, in percent", oninput: showBulk });
  bulk.above = h("button", { type: "button", onclick: () => decideShown("accept", limit()) }, "");
  bulk.undo = h("button", { type: "button", class: "quiet", onclick: undo }, "Undo ", h("kbd", {}, "U"));
  $(".bulk").append(
    bulk.text,
    bulk.accept,
    bulk.keep,
    h("span", { class: "above" }, bulk.above, bulk.limit, h("span", {}, "% sure or more")),
    bulk.undo,
  );
}

/** A confidence, in percent, that a tenth of the flagged suggestions have: 95 where the networks are that sure. */
function firstLimit() {
  const sure = DATA.suspects.filter((sample) => sample.flagged).map((sample) => 100 * sample.likely[0][1]);
  const reached = (least) => sure.filter((one) => one >= least).length >= sure.length / 10;
  return LIMITS.find(reached) ?? LIMITS.at(-1);
}

const limit = () => (bulk.limit.value === "" ? 1.01 : +bulk.limit.value / 100);

/** The samples that are shown, are not decided, and whose suggestion is at least this sure and another label. */
function undecided(action, least) {
  const open = view.samples.filter((sample) => !decisions.has(sample.index));
  return action === "keep" ? open : open.filter((sample) => sample.given !== sample.suggested && sample.likely[0][1] >= least);
}

function showBulk() {
  const [open, other, sure] = [undecided("keep", 0), undecided("accept", 0), undecided("accept", limit())];
  bulk.text.textContent = `${count(open.length)} shown without a decision:`;
  bulk.accept.textContent = `Accept all ${count(other.length)}`;
  bulk.keep.textContent = `Keep all ${count(open.length)}`;
  bulk.above.textContent = `Accept the ${count(sure.length)}`;
  bulk.accept.disabled = !other.length;
  bulk.keep.disabled = !open.length;
  bulk.above.disabled = !sure.length;
  bulk.undo.disabled = !past.length;
}

function decideShown(action, least) {
  const samples = undecided(action, least);
  if (!samples.length) return;
  decide(samples.map((sample) => [sample.index, { action, label: className(action === "keep" ? sample.given : sample.suggested) }]));
  repaintAll(() => {});
  announce(`${count(samples.length)} ${DONE[action]}. Undo takes all of them back.`);
}
