// The estimated noise: the most frequent confusions, and a map of all if the classes are few.

function showNoise(showPair) {
  const home = $("#noise .noise");
  const { pairs, matrix } = DATA.noise;
  if (matrix) home.append(heatMap(matrix, showPair));
  home.append(pairs.length ? mostFrequent(pairs, showPair) : h("p", { class: "note" }, "No two classes are confused often."));
  if (DATA.num_issues) home.append(byClass(showPair));
}

/** The classes with the largest share of flagged labels, each a button with a bar. */
function byClass(showPair) {
  const most = 10;
  const classes = DATA.noise.by_class
    .map(([given, flagged], label) => ({ label, given, flagged, share: given ? flagged / given : 0 }))
    .filter(({ flagged }) => flagged)
    .sort((a, b) => b.share - a.share);
  return h(
    "div",
    { class: "most-frequent" },
    h("h3", {}, classes.length > most ? `Flagged by class: the ${most} with the largest share` : "Flagged by class"),
    h(
      "ol",
      {},
      ...classes.slice(0, most).map(({ label, given, flagged, share }) =>
        h(
          "li",
          {},
          h(
            "button",
            { type: "button", onclick: () => showPair(label, "") },
            h("span", { class: "pair" }, name(className(label), "given")),
            h("span", { class: "pair-count" }, `${count(flagged)} of ${count(given)}, ${percent(share)}`),
            svg("svg", { class: "pair-bar", viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" },
              svg("rect", { width: 100 * share, height: 4 })),
          ),
        ),
      ),
    ),
  );
}

/** The pairs with the most samples, each a button with a bar. */
function mostFrequent(pairs, showPair) {
  const most = pairs[0][2];
  const shown = DATA.noise.matrix ? pairs.slice(0, 10) : pairs;
  return h(
    "div",
    { class: "most-frequent" },
    h("h3", {}, "Most frequent confusions"),
    h(
      "ol",
      {},
      ...shown.map(([given, suggested, expected]) =>
        h(
          "li",
          {},
          h(
            "button",
            { type: "button", onclick: () => showPair(given, suggested) },
            h("span", { class: "pair" }, name(className(given), "given"), " → ", name(className(suggested), "suggested")),
            h("span", { class: "pair-count" }, count(expected)),
            svg("svg", { class: "pair-bar", viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" },
              svg("rect", { width: (100 * expected) / most, height: 4 })),
          ),
        ),
      ),
    ),
    h("p", { class: "key" }, h("span", { class: "given" }, "given"), " → ", h("span", { class: "suggested" }, "suggested")),
  );
}

/** A row for each given label, a column for each suggested one. Arrow keys move, Enter shows the samples. */
function heatMap(matrix, showPair) {
  const size = matrix.length;
  const most = Math.max(1, ...matrix.flatMap((row, i) => row.filter((_, j) => i !== j)));
  const buttons = matrix.map((row, given) =>
    row.map((expected, suggested) => {
      const onDiagonal = given === suggested;
      const button = h(
        "button",
        {
          type: "button",
          tabindex: given === 0 && suggested === 0 ? 0 : -1,
          class: onDiagonal ? "agree" : null,
          title: `given ${className(given)}, suggested ${className(suggested)}: ${count(expected)}`,
          "aria-label": onDiagonal
            ? `${className(given)}, right: ${count(expected)}`
            : `given ${className(given)}, suggested ${className(suggested)}: ${count(expected)}`,
          onclick: () => showPair(given, suggested),
        },
        size <= 14 && expected >= 0.5 ? count(expected) : "",
      );
      button.style.setProperty("--heat", onDiagonal ? 0 : (Math.max(0, expected) / most) ** 0.75);
      return button;
    }),
  );
  const focus = (row, column) => {
    const next = buttons[Math.min(size - 1, Math.max(0, row))][Math.min(size - 1, Math.max(0, column))];
    for (const button of buttons.flat()) button.tabIndex = button === next ? 0 : -1;
    next.focus();
  };
  const move = (event) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const at = buttons.flat().indexOf(event.target);
    if (!by || at < 0) return;
    event.preventDefault();
    focus(Math.floor(at / size) + by[0], (at % size) + by[1]);
  };
  const grid = h(
    "table",
    { class: size <= 14 ? "heat-map" : "heat-map dense", onkeydown: move, "aria-label": "Estimated noise by class" },
    h(
      "thead",
      {},
      h("tr", {}, h("td", { class: "corner" }, h("span", { class: "given" }, "given ↓"), " ", h("span", { class: "suggested" }, "suggested →")),
        ...DATA.classes.map((text) => h("th", { scope: "col" }, name(text))),
      ),
    ),
    h(
      "tbody",
      {},
      ...buttons.map((row, given) =>
        h("tr", {}, h("th", { scope: "row" }, name(className(given))), ...row.map((button) => h("td", {}, button))),
      ),
    ),
  );
  return h("div", { class: "scroller heat" }, grid);
}
