"use strict";
// What a picture does in a page: the choice of panels and phase, and what the pointer or the arrow keys are on. `root` is the document, or
// the shadow root that has the picture; its data is in it; nothing is loaded. `picked` gets the panel, row and column of a cell that is clicked.
// The result has the picture's data, and `mark`, which outlines the cells that a function of panel and cell number names.
const attachPicture = (root, picked = () => {}) => {
  const data = JSON.parse(root.getElementById("data").textContent);
  const tip = root.getElementById("tip");
  const figures = [...root.querySelectorAll("figure")];
  let phase = -1;

  const list = (numbers) => {
    const out = [];
    for (let i = 0; i < numbers.length; ) {
      let j = i;
      while (j + 1 < numbers.length && numbers[j + 1] === numbers[j] + 1) j += 1;
      out.push(j > i + 1 ? `${numbers[i]}–${numbers[j]}` : numbers.slice(i, j + 1).join(", "));
      i = j + 1;
    }
    return out.join(", ");
  };
  const s = (n) => (n === 1 ? "" : "s");
  const cellAt = (panel, row, col) => row * panel.cols.count + col;
  const blockAt = (panel, cell) => {
    const block = panel.cells.block[cell];
    return block === null ? null : panel.blocks[block];
  };

  // What is known about one cell, a line each.
  const describe = (panel, row, col) => {
    const cell = cellAt(panel, row, col);
    const offset = panel.cells.offset[cell];
    if (offset === null) return null;
    const block = blockAt(panel, cell);
    const label = (axis, i) => `${axis.name} ${axis.scale * (axis.first + i)}`;
    const lines = [`${label(panel.rows, row)}, ${label(panel.cols, col)}`];
    if (data.kind === "atom") {
      if (block) {
        lines.push(`thread ${block.lanes[0]} (group ${(block.lanes[0] % 32) >> 2}, thread in group ${block.lanes[0] & 3})`);
        if (block.value !== null) lines.push(`value ${block.value}`, block.detail);
      }
      return lines.join("\n");
    }
    if (data.kind === "devices") {
      lines.push(block.detail);
      return lines.join("\n");
    }
    lines.push(`offset ${offset}, byte ${offset * data.elemBytes}`, `bank ${panel.cells.bank[cell]}`);
    if (block) {
      lines.push(`lane${s(block.lanes.length)} ${list(block.lanes)}, phase ${block.phase}`);
      const [first, count] = block.banks;
      lines.push(count > 1 ? `asks banks ${first}–${first + count - 1}` : `asks bank ${first}`);
      if (block.offends) lines.push("conflict: asks the busiest bank of its phase");
    }
    return lines.join("\n");
  };

  const box = (panel, row, col) =>
    `M${panel.x + col * panel.w} ${panel.y + row * panel.h}h${panel.w}v${panel.h}h${-panel.w}z`;

  // A path over all cells that `wanted` holds for.
  const over = (panel, wanted, attributes) => {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    let d = "";
    for (let row = 0; row < panel.rows.count; row += 1) {
      for (let col = 0; col < panel.cols.count; col += 1) {
        const cell = cellAt(panel, row, col);
        if (panel.cells.offset[cell] !== null && wanted(cell)) d += box(panel, row, col);
      }
    }
    path.setAttribute("d", d);
    for (const [name, value] of Object.entries(attributes)) path.setAttribute(name, value);
    return path;
  };

  // What belongs to the cell: the same thread of an atom; the same devices; the same bank in the same phase of an access; the same bank.
  const related = (panel, cell) => {
    const block = blockAt(panel, cell);
    if (data.kind === "atom") {
      return (other) => block !== null && blockAt(panel, other)?.lanes[0] === block.lanes[0];
    }
    if (data.kind === "devices") return (other) => blockAt(panel, other).detail === block.detail;
    if (block) {
      return (other) => {
        const b = blockAt(panel, other);
        return b !== null && b.phase === block.phase && b.banks[0] === block.banks[0];
      };
    }
    if (panel.blocks.length > 0) return (other) => other === cell;
    return (other) => panel.cells.bank[other] === panel.cells.bank[cell];
  };

  const redraw = (figure) => {
    const panel = data.panels[figure.dataset.panel];
    const group = figure.querySelector(".over");
    group.replaceChildren();
    if (phase >= 0 && panel.blocks.length > 0) {
      const out = (cell) => blockAt(panel, cell)?.phase !== phase;
      group.append(over(panel, out, { fill: "#fff", "fill-opacity": "0.82", class: "dim" }));
    }
    if (figure.marked) {
      group.append(over(panel, figure.marked, { fill: "#c31", "fill-opacity": "0.25", stroke: "#c31", "stroke-width": "2", class: "marked" }));
    }
    const on = figure.on;
    if (on) {
      const cell = cellAt(panel, on[0], on[1]);
      group.append(
        over(panel, related(panel, cell), { fill: "#111", "fill-opacity": "0.16", class: "related" }),
        over(panel, (other) => other === cell, { fill: "none", stroke: "#c31", "stroke-width": "2.5", class: "here" }),
      );
    }
  };

  const point = (figure, row, col, x, y) => {
    const panel = data.panels[figure.dataset.panel];
    const inside = row >= 0 && col >= 0 && row < panel.rows.count && col < panel.cols.count;
    const text = inside ? describe(panel, row, col) : null;
    if (text === null) return leave(figure);
    if (!figure.on || figure.on[0] !== row || figure.on[1] !== col) {
      figure.on = [row, col];
      tip.textContent = text;
      redraw(figure);
    }
    tip.hidden = false;
    const size = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(0, Math.min(x + 14, innerWidth - size.width - 4))}px`;
    tip.style.top = `${y + 14 + size.height > innerHeight ? Math.max(0, y - size.height - 10) : y + 14}px`;
  };

  const leave = (figure) => {
    tip.hidden = true;
    if (figure.on) {
      figure.on = null;
      redraw(figure);
    }
  };

  for (const figure of figures) {
    const svg = figure.querySelector("svg");
    const panel = data.panels[figure.dataset.panel];
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("mousemove", (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const [row, col] = [Math.floor((at.y - panel.y) / panel.h), Math.floor((at.x - panel.x) / panel.w)];
      point(figure, row, col, event.clientX, event.clientY);
    });
    svg.addEventListener("click", () => figure.on && picked(panel, ...figure.on));
    svg.addEventListener("mouseleave", () => leave(figure));
    svg.addEventListener("blur", () => leave(figure));
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (event.key === "Escape") leave(figure);
      if (event.key === "Enter" && figure.on) picked(panel, ...figure.on);
      if (!step) return;
      event.preventDefault();
      const from = figure.on ?? [-step[0], -step[1]];
      const clamp = (i, count) => Math.max(0, Math.min(count - 1, i));
      const [row, col] = [clamp(from[0] + step[0], panel.rows.count), clamp(from[1] + step[1], panel.cols.count)];
      const corner = new DOMPoint(panel.x + (col + 1) * panel.w, panel.y + (row + 1) * panel.h).matrixTransform(svg.getScreenCTM());
      point(figure, row, col, corner.x, corner.y);
    });
  }

  root.querySelectorAll("input[name=panels]").forEach((input) =>
    input.addEventListener("change", () => {
      for (const figure of figures) {
        figure.hidden = input.value !== "both" && input.value !== data.panels[figure.dataset.panel].role;
      }
    }),
  );
  root.getElementById("phase")?.addEventListener("change", (event) => {
    phase = Number(event.target.value);
    for (const figure of figures) redraw(figure);
    for (const item of root.querySelectorAll("li[data-phase]")) {
      item.toggleAttribute("data-on", Number(item.dataset.phase) === phase);
    }
  });
  root.querySelector("form")?.addEventListener("submit", (event) => event.preventDefault());
  const mark = (wanted) => {
    for (const figure of figures) {
      const panel = data.panels[figure.dataset.panel];
      figure.marked = wanted && ((cell) => wanted(panel, cell));
      redraw(figure);
    }
  };
  return { data, mark };
};
