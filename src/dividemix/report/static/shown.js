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
    small: (shown) => h("span", { class: "text", dir: "auto" }, shown.text),
    large: (shown) => h("p", { class: "text", dir: "auto", tabindex: 0 }, shown.text),
  },
  row: {
    small: (shown) => cells(shown.cells.slice(0, 6)),
    large: (shown) => cells(shown.cells),
  },
};

function picture(src, alt) {
  const element = h("img", { src, alt, decoding: "async", draggable: "false" });
  element.addEventListener("load", () => element.classList.toggle("tiny", Math.max(element.naturalWidth, element.naturalHeight) <= 48));
  return element;
}

/** The columns of a row: pairs of a name and a value. */
function cells(pairs) {
  return h("span", { class: "cells" }, ...pairs.map(([column, value]) => h("span", {}, h("small", {}, name(column)), " ", name(value))));
}

/** The sample as an element: its picture, its text, its columns, or its number. */
function showSample(sample, size) {
  const label = `Sample ${sample.index}, given label ${className(sample.given)}`;
  return sample.shown ? SHOWN[sample.shown.kind][size](sample.shown, label) : h("span", { class: "no-picture" }, `#${sample.index}`);
}
