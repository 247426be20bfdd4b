// A map of samples that are vectors, in two dimensions. The page has this section only for such data.

function showMap() {
  if (!DATA.map) {
    dropSection("map");
    return;
  }
  const { points, given, suggested, flagged, share } = DATA.map;
  const dots = points.map(([x, y], i) => {
    const words = flagged[i] ? `given ${className(given[i])}, suggested ${className(suggested[i])}` : className(given[i]);
    return svg("circle", { cx: 12 + 976 * x, cy: 612 - 600 * y, r: flagged[i] ? 7 : 4, class: flagged[i] ? "suspect" : null },
      svg("title", {}, words));
  });
  const colours = (labels) => dots.forEach((dot, i) => dot.setAttribute("fill", mapColour(labels[i])));
  const order = dots.map((_, i) => i).sort((a, b) => flagged[a] - flagged[b]); // suspects above the others
  const picture = svg("svg", { class: "data-map", viewBox: "0 0 1000 624", role: "img",
    "aria-label": `Map of ${count(points.length)} samples` }, ...order.map((i) => dots[i]));
  const choices = [["given label", given], ["suggested label", suggested]].map(([text, labels], place) => {
    const input = h("input", { type: "radio", name: "map-colour", checked: place === 0, onchange: () => colours(labels) });
    return h("label", {}, input, ` ${text}`);
  });
  colours(given);
  const section = $("#map");
  $(".lead", section).append(`${count(points.length)} samples by the two main directions of their vectors, which have `
    + `${percent(share)} of the variance. Suspects have a ring. One that is among samples of another colour is worth a look.`);
  $(".map-colour", section).append("Colour: ", ...choices);
  section.append(picture);
  if (DATA.classes.length <= 30) section.append(
    h("p", { class: "key map-key" }, ...DATA.classes.map((text, label) =>
      h("span", {}, svg("svg", { viewBox: "0 0 10 10", width: 12, height: 12, "aria-hidden": "true" },
        svg("circle", { cx: 5, cy: 5, r: 5, fill: mapColour(label) })), " ", name(text)))),
  );
}

/** A colour for a class: hues far from each other for neighbours, readable on light and on dark. */
const mapColour = (label) => `hsl(${(label * 137.5) % 360} 62% ${label % 2 ? 42 : 56}%)`;
