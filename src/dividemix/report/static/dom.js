// Used by every part of the page: its data, elements built without markup, and readable numbers.

const DATA = JSON.parse(document.getElementById("data").textContent);

const $ = (selector, root = document) => root.querySelector(selector);

/** An element. Text is added as text, never as markup, so no class name or path can do harm. */
function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element, as h. */
function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A user's text (a class name, a path) in its own direction. CSS shortens it; the tooltip has all of it. */
function name(text, kind = "") {
  return h("bdi", { class: `name ${kind}`.trim(), dir: "auto", title: text }, text);
}

const className = (label) => DATA.classes[label];
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** 1234567 as 1,234,567. */
const count = (value) => Math.round(value).toLocaleString("en");
const decimals = (value, digits) => (isNumber(value) ? value.toFixed(digits) : "–");

/** A share in [0, 1] in percent, with the digits that matter. */
function percent(share) {
  if (!isNumber(share)) return "–";
  const value = 100 * share;
  if (value > 0 && value < 0.1) return "<0.1\u00a0%";
  return `${value.toFixed(value > 0 && value < 9.95 ? 1 : 0)}\u00a0%`;
}

/** A table with a header row; the first cell of each line heads it. */
function table(headings, lines) {
  return h(
    "table",
    {},
    h("thead", {}, h("tr", {}, ...headings.map((heading) => h("th", { scope: "col" }, heading)))),
    h(
      "tbody",
      {},
      ...lines.map(([first, ...rest]) =>
        h("tr", {}, h("th", { scope: "row", dir: "auto" }, first), ...rest.map((cell) => h("td", { dir: "auto" }, cell))),
      ),
    ),
  );
}

/** Pairs of a term and its description. */
const terms = (pairs) => pairs.map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", { dir: "auto" }, value)));

/** Remove an empty section from the page and its navigation. */
function dropSection(id) {
  document.getElementById(id).remove();
  $(`nav a[href="#${id}"]`).remove();
}

/** Tell screen readers something. */
function announce(text) {
  $("#announcer").textContent = text;
}
