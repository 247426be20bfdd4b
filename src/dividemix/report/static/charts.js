// Line charts in SVG, drawn at their width on the screen, so that text keeps its size.

const CHART_HEIGHT = 230;
const MARGIN = { top: 10, right: 14, bottom: 40, left: 52 };

/** Numbers from low to high at steps of 1, 2 or 5 times a power of ten; whole ones if asked. */
function ticks(low, high, most, whole = false) {
  const raw = (high - low || 1) / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  let step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999);
  if (whole) step = Math.max(1, step);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
}

/** A tick as short text: 12000 as 12k. */
function tickText(value) {
  if (Math.abs(value) >= 10000) return `${+(value / 1000).toFixed(1)}k`;
  return String(+value.toPrecision(6));
}

/** Scales and the SVG with its axes: x and y are {low, high, label, whole}. */
function plot(width, x, y, label, height = CHART_HEIGHT) {
  const right = width - MARGIN.right;
  const bottom = height - MARGIN.bottom;
  const toX = (value) => MARGIN.left + ((value - x.low) / (x.high - x.low || 1)) * (right - MARGIN.left);
  const toY = (value) => bottom - ((value - y.low) / (y.high - y.low || 1)) * (bottom - MARGIN.top);
  const root = svg("svg", { width, height, role: "img", "aria-label": label });
  for (const value of ticks(y.low, y.high, 5)) {
    root.append(
      svg("line", { class: "grid", x1: MARGIN.left, x2: right, y1: toY(value), y2: toY(value) }),
      svg("text", { class: "tick", x: MARGIN.left - 8, y: toY(value) + 4, "text-anchor": "end" }, tickText(value)),
    );
  }
  for (const value of ticks(x.low, x.high, Math.max(2, Math.floor(width / 70)), x.whole)) {
    root.append(
      svg("line", { class: "axis", x1: toX(value), x2: toX(value), y1: bottom, y2: bottom + 4 }),
      svg("text", { class: "tick", x: toX(value), y: bottom + 17, "text-anchor": "middle" }, tickText(value)),
    );
  }
  root.append(
    svg("line", { class: "axis", x1: MARGIN.left, x2: right, y1: bottom, y2: bottom }),
    svg("text", { class: "axis-label", x: right, y: height - 4, "text-anchor": "end" }, x.label),
  );
  return { root, toX, toY, right, bottom };
}

/** Show what draw(width) returns, now and whenever the element's width changes. */
function drawAtWidth(element, draw) {
  let drawn = 0;
  const redraw = (force) => {
    const width = Math.floor(element.clientWidth);
    if (width > 0 && (force || width !== drawn)) {
      drawn = width;
      element.replaceChildren(draw(width));
    }
  };
  new ResizeObserver(() => redraw(false)).observe(element);
  return () => redraw(true);
}

/** A swatch, a name and a value for each series. Dashes and hatching tell them apart without colour. */
function legend(series) {
  return h(
    "ul",
    { class: "legend" },
    ...series.map((one) =>
      h(
        "li",
        {},
        svg(
          "svg",
          { width: 26, height: 12, "aria-hidden": "true" },
          one.bar
            ? svg("rect", { class: `bar ${one.kind}`, x: 6, y: 0, width: 14, height: 12 })
            : svg("line", { class: `line ${one.kind}`, x1: 0, x2: 26, y1: 6, y2: 6 }),
        ),
        one.name,
        h("output", {}),
      ),
    ),
  );
}

/**
 * A figure with lines. series: [{name, kind, points: [[x, y], ...]}]; bands: [{from, to, name}] shade a range of x;
 * marks: [{x, name}] are vertical lines; points: [{x, y, name}] are dots. The legend shows the values at the mouse, or
 * at `x.rest` without one. at(x) is the text of a position, format(y) that of a value.
 */
function lineChart({ title, x, y, series, bands = [], marks = [], points = [], format, at }) {
  const place = h("span", { class: "readout" });
  const key = legend(series);
  const area = h("div", { class: "plot" });
  const positions = [...new Set(series.flatMap((one) => one.points.map((point) => point[0])))].sort((a, b) => a - b);

  const say = (position) => {
    place.textContent = at(position);
    series.forEach((one, i) => {
      const value = one.points.find((point) => point[0] === position)?.[1];
      $("output", key.children[i]).textContent = isNumber(value) ? format(value) : "–";
    });
  };
  const rest = () => say(x.rest !== undefined && positions.includes(x.rest) ? x.rest : positions.at(-1));

  const draw = (width) => {
    const { root, toX, toY, right, bottom } = plot(width, x, y, `${title}. ${place.textContent}: ${key.textContent}`);
    const cursor = svg("line", { class: "cursor", y1: MARGIN.top, y2: bottom, visibility: "hidden" });
    for (const band of bands) {
      root.prepend(
        svg("rect", {
          class: "band",
          x: toX(band.from),
          y: MARGIN.top,
          width: Math.max(0, toX(band.to) - toX(band.from)),
          height: bottom - MARGIN.top,
        }),
      );
      root.append(svg("text", { class: "mark-label", x: toX(band.from) + 5, y: bottom - 7 }, band.name));
    }
    for (const mark of marks) {
      const atEnd = toX(mark.x) > right - 60;
      root.append(
        svg("line", { class: "mark", x1: toX(mark.x), x2: toX(mark.x), y1: MARGIN.top, y2: bottom }),
        svg(
          "text",
          { class: "mark-label", x: toX(mark.x) + (atEnd ? -5 : 5), y: bottom - 7, "text-anchor": atEnd ? "end" : "start" },
          mark.name,
        ),
      );
    }
    for (const one of series) {
      const path = one.points.map(([px, py]) => `${toX(px).toFixed(1)},${toY(py).toFixed(1)}`);
      root.append(svg("polyline", { class: `line ${one.kind}`, points: path.join(" ") }));
      if (path.length === 1) {
        root.append(svg("circle", { class: `dot ${one.kind}`, cx: toX(one.points[0][0]), cy: toY(one.points[0][1]), r: 3 }));
      }
    }
    for (const point of points) {
      root.append(
        svg("circle", { class: "dot wrong", cx: toX(point.x), cy: toY(point.y), r: 5 }),
        svg(
          "text",
          { class: "mark-label", x: toX(point.x) - 9, y: toY(point.y) + 18, "text-anchor": "end" },
          point.name,
        ),
      );
    }
    root.append(cursor);
    root.addEventListener("pointermove", (event) => {
      const mouse = event.clientX - root.getBoundingClientRect().left;
      const nearest = positions.reduce((a, b) => (Math.abs(toX(b) - mouse) < Math.abs(toX(a) - mouse) ? b : a));
      cursor.setAttribute("x1", toX(nearest));
      cursor.setAttribute("x2", toX(nearest));
      cursor.setAttribute("visibility", "visible");
      say(nearest);
    });
    root.addEventListener("pointerleave", () => {
      cursor.setAttribute("visibility", "hidden");
      rest();
    });
    return root;
  };

  rest();
  const figure = h("figure", { class: "chart" }, h("figcaption", {}, h("p", {}, h("strong", {}, title), " · ", place), key), area);
  drawAtWidth(area, draw);
  return figure;
}
