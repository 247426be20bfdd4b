// What a card shows of a sample, small in the gallery and large on request. A kind of sample is one entry of SHOWN.

const SHOWN = {
  image: {
    small: (shown, label) => picture(shown.small, label),
    // The file itself is sharper than the thumbnail. Where it cannot be loaded, the thumbnail is shown.
    large: (shown, label) => {
      const element = picture(shown.large ?? shown.original ?? shown.small, label);
      element.addEventListener("error", () => (element.src = shown.small), { once: true });
      return element;
    },
  },
  text: {
    small: (shown) => h("span", { class: "text", dir: "auto" }, ...marked(shown)),
    large: (shown) => h("div", { class: "text", tabindex: 0 }, h("p", { dir: "auto" }, ...marked(shown)), markedNote(shown)),
  },
  row: {
    // There is room for a few columns: those with unusual values first.
    small: (shown) => cells([...shown.cells].sort((a, b) => b[2] - a[2]).slice(0, 6)),
    large: (shown) => h("div", { class: "row", tabindex: 0 }, cells(shown.cells), unusualNote(shown.cells)),
  },
};

/** The text in pieces: the words that matter are marked. */
function marked({ text, marks = [] }) {
  const pieces = marks.flatMap(([start, stop], i) => [text.slice(marks[i - 1]?.[1] ?? 0, start), h("mark", {}, text.slice(start, stop))]);
  return [...pieces, text.slice(marks.at(-1)?.[1] ?? 0)];
}

function markedNote({ marks = [] }) {
  return marks.length ? h("p", { class: "note" }, "Marked: words that speak for the suggested label and against the given one.") : "";
}

function picture(src, alt) {
  const element = h("img", { src, alt, decoding: "async", draggable: "false" });
  element.addEventListener("load", () => element.classList.toggle("tiny", Math.max(element.naturalWidth, element.naturalHeight) <= 48));
  return element;
}

/** The columns of a row: a name, a value, and whether that is unusual among the rows with the same given label. */
function cells(columns) {
  return h("span", { class: "cells" }, ...columns.map(cell));
}

function cell([column, value, isUnusual]) {
  const shown = value === "" ? h("span", { class: "missing" }, "missing") : name(value);
  return h("span", isUnusual ? { class: "unusual" } : {}, h("small", {}, name(column)), " ", shown);
}

function unusualNote(columns) {
  return columns.some((one) => one[2]) ? h("p", { class: "note" }, "Marked: unusual among the rows with the same given label.") : "";
}

/** The sample as an element: its picture, its text, its columns, or its number. */
function showSample(sample, size) {
  const label = `Sample ${sample.index}, given label ${className(sample.given)}`;
  return sample.shown ? SHOWN[sample.shown.kind][size](sample.shown, label) : h("span", { class: "no-picture" }, `#${sample.index}`);
}
