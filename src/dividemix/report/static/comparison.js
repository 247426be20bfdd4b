// Runs side by side: results, settings, curves, and how far their label issues agree.

const RUNS = DATA.runs;
const NUM_KINDS = 6; // of colours and dashes
const kindOf = (i) => `run-${i % NUM_KINDS}`;

/** A value of config.yaml as text. */
const settingText = (value) => (value === null || value === undefined ? "–" : String(value));

/** 3725 seconds as 1:02:05. */
function clock(seconds) {
  const whole = Math.round(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (value) => String(value).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** The columns of the results: heading, value, text, and whether the largest value is the best. */
const COLUMNS = [
  ["Kept", (run) => run.kept_acc, (value) => value.toFixed(2), true],
  ["Final", (run) => run.final_acc, (value) => value.toFixed(2), true],
  ["Best", (run) => run.best_acc, (value) => value.toFixed(2), true],
  ["Mean of last 10", (run) => run.last_acc, (value) => value.toFixed(2), true],
  ["Held-out", (run) => run.val_acc, (value) => value.toFixed(2), false],
  ["AUC", (run) => run.clean_auc, (value) => value.toFixed(3), true],
  ["Estimated noise", (run) => run.noise_rate, percent, false],
  ["Noise added", (run) => run.true_noise, percent, false],
  ["Flagged", (run) => run.num_flagged, count, false],
  ["Epochs", (run) => run.num_epochs, count, false],
  ["Time", (run) => run.seconds, clock, false],
  ["s per epoch", (run) => run.seconds / run.num_epochs, (value) => value.toFixed(value < 10 ? 2 : 0), false],
  ["Cost, A = 1", (run) => cost(run) / cost(RUNS[0]), (value) => value.toFixed(2), false],
];

const cost = (run) => run.seconds / run.num_epochs;

function showRuns() {
  $(".runs").append(
    ...RUNS.map((run, i) =>
      h(
        "li",
        {},
        svg("svg", { width: 26, height: 12, "aria-hidden": "true" }, svg("line", { class: `line ${kindOf(i)}`, x1: 0, x2: 26, y1: 6, y2: 6 })),
        h("span", { class: "letter" }, run.letter),
        name(run.path),
        h("span", { class: "muted" }, run.finished ? run.method : `${run.method}, not finished`),
      ),
    ),
  );
}

function showResults() {
  const used = COLUMNS.filter(([, value]) => RUNS.some((run) => isNumber(value(run))));
  const grid = table(
    ["", ...used.map(([heading]) => heading)],
    RUNS.map((run) => [run.letter, ...used.map(([, value, text]) => (isNumber(value(run)) ? text(value(run)) : "–"))]),
  );
  used.forEach(([, value, , isBetter], column) => {
    const values = RUNS.map(value);
    const best = Math.max(...values.filter(isNumber));
    if (!isBetter || values.filter(isNumber).length < 2) return;
    [...grid.tBodies[0].rows].forEach((row, i) => row.cells[column + 1].classList.toggle("best", values[i] === best));
  });
  $("#results .scroller").append(grid);
  const machines = [...new Set(RUNS.map((run) => run.machine))];
  const lettersOn = (machine) => RUNS.filter((run) => run.machine === machine).map((run) => run.letter);
  const words = machines.map((machine) => (machines.length > 1 ? `${lettersOn(machine).join(", ")}: ${machine}` : machine));
  $(".machines").textContent = `Trained on ${words.join("; ")}. Times on different machines, or beside other work, do not compare.`;
}

function showSettings() {
  const lines = Object.entries(DATA.settings).map(([setting, values]) => [setting, ...values.map(settingText)]);
  const place = $("#settings .scroller");
  if (lines.length) place.append(table(["", ...RUNS.map((run) => run.letter)], lines));
  else place.append(h("p", { class: "note" }, "None: the runs have the same settings."));
}

/** Limits of an axis with some room around the values. */
function limits(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  return { low: Math.max(low >= 0 ? 0 : -Infinity, low - room), high: high + room };
}

function showCurves() {
  const last = Math.max(2, ...RUNS.map((run) => run.num_epochs));
  for (const [key, title] of Object.entries(DATA.headings)) {
    const series = RUNS.map((run, i) => ({ name: run.letter, kind: kindOf(i), points: run.curves[key] ?? [] })).filter(
      (one) => one.points.length,
    );
    if (!series.length) continue;
    const y = limits(series.flatMap((one) => one.points.map((point) => point[1])));
    const digits = key === "clean_auc" || key === "loss" ? 3 : 1;
    $("#curves .charts").append(
      lineChart({
        title,
        series,
        x: { low: 1, high: last, label: "epoch", whole: true },
        y,
        format: (value) => value.toFixed(digits),
        at: (epoch) => `epoch ${epoch}`,
      }),
    );
  }
  if (!$("#curves .charts").children.length) dropSection("curves");
}

function showAgreement() {
  if (!DATA.pairs.length) {
    dropSection("agreement");
    return;
  }
  const headings = ["Runs", "Samples", "Flagged by both", "By the first alone", "By the second alone"];
  const lines = DATA.pairs.map(({ first, second, agreement }) => [
    `${first} and ${second}`,
    count(agreement.num_same_label),
    count(agreement.num_both),
    count(agreement.num_first),
    count(agreement.num_second),
    percent(agreement.overlap),
    decimals(agreement.rank_correlation, 3),
    percent(agreement.same_suggestion),
  ]);
  const all = [...headings, "Overlap", "Rank correlation", "Same suggestion"];
  $("#agreement .scroller").append(table(all, lines));
  const total = DATA.flagged_by.reduce((sum, value) => sum + value, 0);
  if (!total) return;
  const words = (k) => (k === 0 ? "no run" : k === 1 ? "1 run" : `${k} runs`);
  $(".shares").append(
    h("h3", {}, `The ${count(total)} samples that all runs share, by the number of runs that flag them`),
    h(
      "ul",
      {},
      ...DATA.flagged_by.map((number, k) =>
        h(
          "li",
          {},
          h("span", {}, `flagged by ${words(k)}`),
          svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("rect", { width: (100 * number) / total, height: 10 })),
          h("output", {}, count(number)),
        ),
      ),
    ),
  );
}

function showNoiseByClass() {
  const known = RUNS.filter((run) => run.noise_by_class);
  const labels = [...new Set(known.flatMap((run) => Object.keys(run.noise_by_class)))];
  if (!labels.length) {
    dropSection("noise");
    return;
  }
  const lines = labels.map((label) => [label, ...known.map((run) => percent(run.noise_by_class[label]))]);
  $("#noise .scroller").append(table(["Given label", ...known.map((run) => run.letter)], lines));
}

showRuns();
showResults();
showSettings();
showCurves();
showAgreement();
showNoiseByClass();
