// The charts over the epochs, the quality of the flags, and the settings.

/** Whether the epoch to keep was chosen with clean validation images instead of held-out samples. */
function valIsClean() {
  return DATA.rows.some((row) => row.val_is_clean);
}

/** The points of one value over the epochs. Epochs without it are skipped. */
function overEpochs(value) {
  return DATA.rows.map((row) => [row.epoch, value(row)]).filter((point) => isNumber(point[1]));
}

/** A series for each net: its entry of a list in the rows, times scale(row). */
function byNet(key, scale = () => 1) {
  const numNets = Math.max(0, ...DATA.rows.map((row) => row[key]?.length ?? 0));
  return Array.from({ length: numNets }, (_, net) => ({
    name: `network ${net + 1}`,
    kind: net === 0 ? "first" : "second",
    points: overEpochs((row) => (isNumber(row[key]?.[net]) ? row[key][net] * scale(row) : null)),
  })).filter((one) => one.points.length);
}

/** The phases whose epochs cannot be kept, as bands between low and high. */
function bandsOfPhases(low, high) {
  const bands = [];
  for (const row of DATA.rows.filter(({ selects }) => selects === false)) {
    const end = Math.min(high, row.epoch + 0.5);
    if (bands.at(-1)?.name === row.phase && bands.at(-1).to === row.epoch - 0.5) bands.at(-1).to = end;
    else bands.push({ from: Math.max(low, row.epoch - 0.5), to: end, name: row.phase });
  }
  return bands;
}

function epochChart(title, series, format, fixed) {
  const values = series.flatMap((one) => one.points.map((point) => point[1]));
  const low = fixed ? fixed[0] : Math.max(0, Math.floor((Math.min(...values) - 2) / 10) * 10);
  const high = fixed ? fixed[1] : Math.min(100, Math.ceil((Math.max(...values) + 2) / 10) * 10);
  const epochs = DATA.rows.map((row) => row.epoch);
  const x = { low: Math.min(...epochs, 1), high: Math.max(...epochs, 2), label: "epoch", whole: true, rest: DATA.kept_epoch };
  return lineChart({
    title,
    series,
    x,
    y: { low, high },
    bands: bandsOfPhases(x.low, x.high),
    marks: isNumber(DATA.kept_epoch) ? [{ x: DATA.kept_epoch, name: "kept" }] : [],
    format,
    at: (epoch) => `epoch ${epoch}${epoch === DATA.kept_epoch ? ", kept" : ""}`,
  });
}

function showTraining() {
  if (!DATA.rows.length) {
    dropSection("training");
    return;
  }
  const accuracy = [
    { name: "test", kind: "first", points: overEpochs((row) => row.test_acc) },
    { name: valIsClean() ? "validation, clean" : "held-out, noisy", kind: "second", points: overEpochs((row) => row.val_acc) },
  ].filter((one) => one.points.length);
  // An epoch may divide only some of the samples.
  const labeled = byNet("num_labeled", (row) => 100 / (row.num_divided ?? DATA.num_samples));
  const auc = byNet("clean_auc");
  const inPercent = (value) => `${value.toFixed(1)}\u00a0%`;
  const charts = $("#training .charts");
  if (accuracy.length) charts.append(epochChart("Accuracy in percent", accuracy, inPercent));
  if (labeled.length) charts.append(epochChart("Labels kept in percent", labeled, inPercent, [0, 100]));
  if (auc.length) {
    const low = Math.min(0.5, ...auc.flatMap((one) => one.points.map((point) => point[1])));
    charts.append(epochChart("AUC, right against wrong", auc, (value) => value.toFixed(3), [low, 1]));
  }
  showNumbers();
}

/** The table behind the charts, made when it is opened. */
function showNumbers() {
  const details = $("#training .numbers");
  const list = (values, text) => (values?.length ? values.map(text).join(", ") : "–");
  details.addEventListener(
    "toggle",
    () => {
      const lines = DATA.rows.map((row) => [
        String(row.epoch),
        row.phase ?? "–",
        decimals(row.test_acc, 1),
        decimals(row.val_acc, 1),
        list(row.num_labeled, count),
        list(row.clean_auc, (value) => decimals(value, 3)),
        percent(row.noise_rate),
      ]);
      const validation = valIsClean() ? "Validation acc." : "Held-out acc.";
      const headings = ["Epoch", "Phase", "Test acc.", validation, "Labels kept", "AUC", "Estimated noise"];
      const used = headings.map((_, column) => column < 2 || lines.some((line) => line[column] !== "–"));
      const cut = (cells) => cells.filter((_, column) => used[column]);
      $(".scroller", details).replaceChildren(table(cut(headings), lines.map(cut)));
    },
    { once: true },
  );
}

function showQuality() {
  const section = $("#quality");
  const quality = DATA.quality;
  if (!quality) {
    dropSection("quality");
    return;
  }
  $(".figures", section).append(
    ...terms([
      ["Labels that are wrong", `${count(quality.num_wrong)} (${percent(quality.num_wrong / DATA.num_samples)})`],
      ["AUC of the scores", decimals(quality.auc, 3)],
      ["Average precision", decimals(quality.average_precision, 3)],
      ["Precision of the flags", percent(quality.precision)],
      ["Recall of the flags", percent(quality.recall)],
    ]),
  );
  const flags = isNumber(quality.precision) ? [{ x: quality.recall, y: quality.precision, name: "flags" }] : [];
  $(".charts", section).append(
    lineChart({
      title: "Precision and recall as more labels are flagged",
      series: [{ name: "precision", kind: "first", points: quality.curve }],
      x: { low: 0, high: 1, label: "recall: share of the wrong labels found" },
      y: { low: 0, high: 1 },
      points: flags,
      format: percent,
      at: (recall) => `at recall ${percent(recall)}`,
    }),
  );
}

function showSettings() {
  $("#settings .facts").append(...terms(DATA.facts));
  if (DATA.choices.length) $(".choices .scroller").append(table(["Setting", "Value", "Why"], DATA.choices));
  else $(".choices").remove();
  if (!DATA.choices.length && !DATA.facts.length) dropSection("settings");
}
