"use strict";
// Tables sort by their heads: numbers as numbers, words as words; empty cells come last.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((h) => h.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => row.cells[column].textContent.trim();
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => {
        const x = key(a), y = key(b), u = parseFloat(x), v = parseFloat(y);
        if (x === "" || y === "") return (x === "") - (y === "");
        const order = isNaN(u) || isNaN(v) ? x.localeCompare(y) : u - v;
        return down ? -order : order;
      });
      table.tBodies[0].append(...rows);
    });
  });
}
// Curves zoom in time: drag over an interval, or + and - and arrows; a double click shows all.
for (const curve of document.querySelectorAll(".curve")) {
  const svg = curve.querySelector("svg"), whole = svg.viewBox.baseVal;
  const size = [whole.width, whole.height], x = [+curve.dataset.x0, +curve.dataset.x1];
  const left = curve.querySelector(".left"), right = curve.querySelector(".right");
  let from = 0, to = size[0], start = null;
  const window_ = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  window_.setAttribute("class", "window");
  const at = (event) => {
    const box = svg.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    return from + share * (to - from);
  };
  const show = (a, b) => {
    const least = size[0] / 500;
    if (b - a < least) return;
    from = Math.max(0, a); to = Math.min(size[0], b);
    svg.setAttribute("viewBox", `${from} 0 ${to - from} ${size[1]}`);
    const time = (u) => (x[0] + (u / size[0]) * (x[1] - x[0])).toPrecision(4);
    left.textContent = time(from) + " s"; right.textContent = time(to) + " s";
  };
  svg.addEventListener("pointerdown", (event) => { start = at(event); svg.setPointerCapture(event.pointerId); svg.append(window_); });
  svg.addEventListener("pointermove", (event) => {
    if (start === null) return;
    const now = at(event);
    window_.setAttribute("x", Math.min(start, now)); window_.setAttribute("width", Math.abs(now - start));
    window_.setAttribute("y", 0); window_.setAttribute("height", size[1]);
  });
  svg.addEventListener("pointerup", (event) => {
    const now = at(event); window_.remove(); window_.setAttribute("width", 0);
    if (start !== null) show(Math.min(start, now), Math.max(start, now));
    start = null;
  });
  svg.addEventListener("pointercancel", () => { start = null; window_.remove(); });
  svg.addEventListener("dblclick", () => show(0, size[0]));
  svg.addEventListener("keydown", (event) => {
    const middle = (from + to) / 2, half = (to - from) / 2, step = half / 2;
    const moves = { "+": [middle - step, middle + step], "-": [middle - 2 * half, middle + 2 * half],
      ArrowLeft: from > 0 ? [from - Math.min(step, from), to - Math.min(step, from)] : null,
      ArrowRight: to < size[0] ? [from + Math.min(step, size[0] - to), to + Math.min(step, size[0] - to)] : null, "0": [0, size[0]] };
    if (moves[event.key]) { event.preventDefault(); show(...moves[event.key]); }
  });
}
// Robots turn together: drag, or arrows; + and - zoom, 0 shows them as at first.
const robots = [...document.querySelectorAll(".robot")], first = [-1, 0.5, 1];
let view = [...first];
const turn = () => {
  const [azimuth, elevation, zoom] = view;
  const s = Math.sin(azimuth), c = Math.cos(azimuth), t = Math.sin(elevation), d = Math.cos(elevation);
  const at = (p, k = 0) => [c * p[k + 1] - s * p[k], t * (c * p[k] + s * p[k + 1]) - d * p[k + 2],
    d * (c * p[k] + s * p[k + 1]) + t * p[k + 2]].map((v) => zoom * v);
  for (const svg of robots) {
    const shapes = [...svg.querySelectorAll("[data-space]")].map((shape) => {
      const p = shape.dataset.space.trim().split(" ").map(Number), [x, y, depth] = at(p);
      const set = (values) => { for (const name in values) shape.setAttribute(name, values[name]); };
      if (shape.tagName === "text") { set({ x, y }); return [Infinity, shape]; }
      if (shape.tagName === "line") {
        const [x2, y2, other] = at(p, 3);
        set({ x1: x, y1: y, x2, y2 });
        return [(depth + other) / 2, shape];
      }
      // The outline of an ellipsoid is an ellipse, whose matrix is the sum over projected axes.
      const axes = [3, 6, 9].map((k) => at(p, k));
      const [a, b, e] = [[0, 0], [0, 1], [1, 1]].map(([i, j]) => axes.reduce((sum, v) => sum + v[i] * v[j], 0));
      const middle = (a + e) / 2, away = Math.hypot((a - e) / 2, b), angle = Math.atan2(2 * b, a - e) * 90 / Math.PI;
      const least = shape.classList.contains("impossible") ? 2 : 0;  // Without a real axis: a dot.
      set({ rx: Math.max(least, Math.sqrt(middle + away)), ry: Math.max(least, Math.sqrt(Math.max(0, middle - away))), transform: `translate(${x} ${y}) rotate(${angle})` });
      return [depth, shape];
    });
    svg.append(...shapes.sort((u, v) => u[0] - v[0]).map((u) => u[1]));
  }
};
const move = (azimuth, elevation, zoom = 1) => {
  view = [view[0] + azimuth, Math.min(1.57, Math.max(-1.57, view[1] + elevation)), Math.min(20, Math.max(0.2, view[2] * zoom))];
  turn();
};
for (const svg of robots) {
  let last = null;
  svg.addEventListener("pointerdown", (event) => { last = event; svg.setPointerCapture(event.pointerId); });
  svg.addEventListener("pointermove", (event) => {
    if (last === null) return;
    move((last.clientX - event.clientX) / 100, (event.clientY - last.clientY) / 100);
    last = event;
  });
  for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => { last = null; });
  svg.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [0.2, 0], ArrowRight: [-0.2, 0], ArrowUp: [0, -0.2], ArrowDown: [0, 0.2], "+": [0, 0, 1.25], "-": [0, 0, 0.8], "0": [] };
    const step = moves[event.key];
    if (!step) return;
    event.preventDefault();
    if (step.length) move(...step); else { view = [...first]; turn(); }
  });
}
