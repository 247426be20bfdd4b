// The reviewer's decisions: stored in the browser under the run's id, downloaded as corrections.csv.

const STORAGE_KEY = `dividemix-review-${DATA.run}`;
const ACTIONS = ["keep", "accept", "choose", "skip"];

/** Sample index -> {action, label}, in the order of the decisions. The label is a class name, empty for skip. */
const decisions = new Map();
/** [index, previous decision], for undo. */
let past = [];
/** Whether the browser stores the decisions. Some do not for pages opened from a file. */
let isKept = true;

function loadDecisions() {
  decisions.clear();
  try {
    const stored = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "[]");
    for (const [index, action, label] of stored) {
      if (Number.isInteger(index) && ACTIONS.includes(action) && typeof label === "string") {
        decisions.set(index, { action, label });
      }
    }
  } catch {
    isKept = false;
  }
  past = [...decisions.keys()].map((index) => [index, undefined]);
}

function saveDecisions() {
  try {
    const stored = [...decisions].map(([index, { action, label }]) => [index, action, label]);
    localStorage.setItem(STORAGE_KEY, JSON.stringify(stored));
    isKept = true;
  } catch {
    isKept = false;
  }
}

function decide(index, action, label) {
  past.push([index, decisions.get(index)]);
  decisions.set(index, { action, label });
  saveDecisions();
}

/** Undo the last decision and return the index of its sample, or undefined. */
function undoDecision() {
  const [index, before] = past.pop() ?? [];
  if (index === undefined) return undefined;
  if (before) decisions.set(index, before);
  else decisions.delete(index);
  saveDecisions();
  return index;
}

function clearDecisions() {
  decisions.clear();
  past = [];
  saveDecisions();
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
}
