// The histogram of losses with its mixture, one epoch at a time.

const HISTOGRAM_HEIGHT = 300;

function showLosses() {
  const section = $("#losses");
  const epochs = [...new Set(DATA.divisions.map((division) => division.epoch))].sort((a, b) => a - b);
  const nets = [...new Set(DATA.divisions.map((division) => division.net))].sort((a, b) => a - b);
  if (!epochs.length) {
    dropSection("losses");
    return;
  }
  const found = new Map(DATA.divisions.map((division) => [`${division.epoch}/${division.net}`, division]));
  const known = DATA.divisions.some((division) => division.wrong_counts);
  const [openEpoch, openNet] = DATA.open_division;
  let net = openNet;

  const series = [
    { name: known ? "right labels" : "samples", kind: "right", bar: true },
    ...(known ? [{ name: "wrong labels", kind: "wrong", bar: true }] : []),
    { name: "likely right", kind: "first" },
    { name: "likely wrong", kind: "wrong dashed" },
  ];
  const slider = h("input", { type: "range", min: 0, max: epochs.length - 1, step: 1, id: "epoch-slider" });
  slider.value = Math.max(0, epochs.indexOf(openEpoch));
  const shown = h("output", { class: "shown-epoch", for: "epoch-slider" });
  const readout = h("p", { class: "readout" });
  const area = h("div", { class: "plot" });
  const redraw = drawAtWidth(area, (width) => histogram(width, found.get(`${epochs[+slider.value]}/${net}`)));

  const step = (by) => {
    slider.value = +slider.value + by;
    update();
  };
  const update = () => {
    const epoch = epochs[+slider.value];
    const division = found.get(`${epoch}/${net}`);
    shown.textContent = `Epoch ${epoch} of ${epochs.at(-1)}${epoch === DATA.kept_epoch ? ", kept" : ""}`;
    slider.setAttribute("aria-valuetext", shown.textContent);
    readout.textContent = division ? describe(division) : "This network has no division in this epoch.";
    back.disabled = +slider.value === 0;
    next.disabled = +slider.value === epochs.length - 1;
    redraw();
  };
  const back = h("button", { type: "button", "aria-label": "Previous epoch", onclick: () => step(-1) }, "←");
  const next = h("button", { type: "button", "aria-label": "Next epoch", onclick: () => step(1) }, "→");
  slider.addEventListener("input", update);

  const choice = (value) => {
    const input = h("input", { type: "radio", name: "net", value, onchange: () => ((net = value), update()) });
    input.checked = value === net;
    return h("label", {}, input, h("span", {}, `Network ${value + 1}`));
  };
  const switches = nets.length > 1 ? h("fieldset", { class: "switch" }, h("legend", {}, "Division for"), ...nets.map(choice)) : null;

  $(".stepper", section).append(
    h(
      "div",
      { class: "controls" },
      h("div", { class: "slider" }, h("label", { for: "epoch-slider", class: "visually-hidden" }, "Epoch"), back, slider, next, shown),
      switches,
    ),
    h("figure", { class: "chart" }, h("figcaption", {}, legend(series), readout), area),
  );
  update();
}

const total = (values) => values.reduce((a, b) => a + b, 0);

/** The share of labels that the mixture of a division considers wrong. */
function mixtureShare(division) {
  return total(division.wrong_curve) / (total(division.wrong_curve) + total(division.clean_curve) || 1);
}

/** One sentence about a division, also for screen readers. */
function describe(division) {
  const row = DATA.rows.find(({ epoch }) => epoch === division.epoch);
  const kept = row?.num_labeled?.[division.net];
  const dropped = kept == null ? "" : `, ${percent(1 - kept / (row.num_divided ?? DATA.num_samples))} were dropped`;
  const truth = division.wrong_counts ? `, ${percent(total(division.wrong_counts) / (total(division.counts) || 1))} are wrong in truth` : "";
  return `The mixture considers ${percent(mixtureShare(division))} of the labels wrong${dropped}${truth}.`;
}

/** Bars of counts, known wrong ones on top, and the two components as lines. */
function histogram(width, division) {
  if (!division) return svg("svg", { width, height: HISTOGRAM_HEIGHT, role: "img", "aria-label": "Nothing to show" });
  const { counts, wrong_counts: wrong, clean_curve: clean, wrong_curve: dirty } = division;
  const top = Math.max(1, ...counts, ...clean, ...dirty) * 1.05;
  const x = { low: division.low, high: division.high, label: "loss" };
  const { root, toX, toY, bottom } = plot(width, x, { low: 0, high: top }, `Histogram of losses. ${describe(division)}`, HISTOGRAM_HEIGHT);
  root.prepend(
    svg(
      "defs",
      {},
      svg(
        "pattern",
        { id: "hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
        svg("rect", { class: "hatch-ground", width: 5, height: 5 }),
        svg("line", { class: "hatch-line", x1: 0, x2: 0, y1: 0, y2: 5 }),
      ),
    ),
  );
  const bin = (division.high - division.low) / counts.length;
  const left = (i) => toX(division.low + i * bin);
  const bar = (kind, i, from, to) =>
    svg("rect", {
      class: `bar ${kind}`,
      x: left(i),
      y: toY(to),
      width: Math.max(0.5, left(i + 1) - left(i) - 1),
      height: Math.max(0, toY(from) - toY(to)),
    });
  counts.forEach((total, i) => {
    const numWrong = wrong?.[i] ?? 0;
    root.append(bar("right", i, 0, total - numWrong));
    if (numWrong) root.append(bar("wrong", i, total - numWrong, total));
  });
  const line = (kind, values) =>
    svg("polyline", {
      class: `line ${kind}`,
      points: values.map((value, i) => `${((left(i) + left(i + 1)) / 2).toFixed(1)},${Math.min(bottom, toY(value)).toFixed(1)}`).join(" "),
    });
  root.append(line("first", clean), line("wrong dashed", dirty));
  return root;
}
