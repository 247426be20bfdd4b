// The reviewer's decisions. STORE keeps them; "Download corrections" writes them as corrections.csv.

const ACTIONS = ["keep", "accept", "choose", "skip", "delete", "ambiguous"];

/** Sample index -> {action, label}, in the order of the decisions. The label is a class name, or empty. */
const decisions = new Map();
/** Steps, for undo. A step is a list of [index, decision before]. */
let past = [];

function loadDecisions(stored) {
  decisions.clear();
  for (const [index, action, label] of stored) {
    if (Number.isInteger(index) && ACTIONS.includes(action) && typeof label === "string") {
      decisions.set(index, { action, label });
    }
  }
  past = [...decisions.keys()].map((index) => [[index, undefined]]);
}

/** Take over the decisions of another tab. What this tab decided can still be undone. */
function mergeDecisions(stored) {
  const mine = past;
  loadDecisions(stored);
  past = mine;
}

const asEntry = ([index, decision]) => [index, decision?.action ?? null, decision?.label ?? ""];

/** Apply a list of [index, decision or undefined] and store it. */
function apply(changes) {
  for (const [index, decision] of changes) {
    if (decision) decisions.set(index, decision);
    else decisions.delete(index);
  }
  STORE.save(changes.map(asEntry), [...decisions].map(asEntry));
}

/** Decide on samples in one step. changes: [[index, {action, label}], ...]. */
function decide(changes) {
  past.push(changes.map(([index]) => [index, decisions.get(index)]));
  apply(changes);
}

/** Undo the last step and return the indices of its samples. */
function undoDecision() {
  const step = past.pop() ?? [];
  apply(step);
  return step.map(([index]) => index);
}

function clearDecisions() {
  decide([...decisions.keys()].map((index) => [index, undefined]));
}

/** The corrections as CSV (RFC 4180): fields quoted where necessary, lines ended by CR LF. */
function correctionsCsv() {
  const quoted = (value) => (/[",\r\n]|^\s|\s$/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  // An apostrophe keeps spreadsheet programs from running a formula; `dividemix relabel` takes it off.
  const isFormula = (value) => /^'*[=+\-@\t\r]/.test(value) && !/^'*[+-]?[0-9]+(\.[0-9]+)?$/.test(value);
  const field = (value) => quoted(isFormula(value) ? `'${value}` : value);
  const bySample = new Map(DATA.suspects.map((sample) => [sample.index, sample]));
  const lines = [...decisions]
    .filter(([index]) => bySample.has(index))
    .sort((a, b) => a[0] - b[0])
    .map(([index, { action, label }]) => {
      const sample = bySample.get(index);
      return [String(index), sample.path ?? "", className(sample.given), label, action];
    });
  return [["index", "path", "given_label", "new_label", "action"], ...lines]
    .map((line) => `${line.map(field).join(",")}\r\n`)
    .join("");
}

function downloadCorrections() {
  const url = URL.createObjectURL(new Blob([correctionsCsv()], { type: "text/csv;charset=utf-8" }));
  const link = h("a", { href: url, download: "corrections.csv" });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
  status.applied.hidden = !DATA.apply || Boolean(DATA.saved_to);
}
