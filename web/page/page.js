// The page: fields in, answers out, and the state of both in the address.
(async () => {
  const ELEMENTS = ["f16", "bf16", "f32", "tf32", "f64", "e4m3", "e5m2", "s8", "u8", "s32", "b128"];
  // What each view starts with, which is also the list of the fields that the address holds.
  const DEFAULTS = {
    layout: { layout: "Sw<3,3,3> o (16,64):(64,1)", elem: "f16", access: "ldmatrix.x4 @ (16,2):(64,8)", banks: "", target: "cuda" },
    derive: { tile: "64x64", elem: "f16", family: "any", accesses: "cp.async.16 @ (8,4):(8,64)\nldmatrix.x4 @ (16,2):(64,8)" },
    compare: { one: "Sw<1,3,1> o (8,16):(16,1)", other: "(8,16):(16,1)", elem: "f16" },
    atom: { name: "mma.m16n8k16.f16", operand: "", at: "" },
    gemm: { plan: "mma-f16-64x64x32", trans: "nn", m: "96", n: "72", k: "64" },
  };
  // Questions that people ask in the field.
  const EXAMPLES = {
    layout: [
      ["row-major tile, column read", { layout: "(32,32):(32,1)", elem: "f32", access: "ld.32 @ 32:32" }],
      ["the same, padded", { layout: "(32,32):(33,1)", elem: "f32", access: "ld.32 @ 32:32" }],
      ["128-byte swizzle", { layout: "Sw<3,3,3> o (64,64):(64,1)", elem: "f16", access: "", banks: "1" }],
      ["CuTe C++", { layout: "composition(Swizzle<2,4,3>{}, Layout<Shape<_8,_32>, Stride<_32,_1>>{})", elem: "f16", access: "", banks: "1" }],
      ["composition", { layout: "(4,(2,2)):(2,(1,8)) o 4:2", access: "" }],
      ["zipped_divide", { layout: "zipped_divide((8,16):(16,1), (4,8))", access: "", elem: "f32" }],
      ["is it bijective?", { layout: "is_bijective(Sw<2,0,2> o (4,4):(4,1))", access: "" }],
    ],
    compare: [
      ["a tile and its swizzle", DEFAULTS.compare],
      ["raked and blocked", { one: "raked_product((2,2):(1,2), (3,2):(1,3))", other: "blocked_product((2,2):(1,2), (3,2):(1,3))", elem: "f32" }],
    ],
    derive: [
      ["tile of halves for ldmatrix", { tile: "64x64", elem: "f16", family: "any", accesses: DEFAULTS.derive.accesses }],
      ["transpose of 32x32 floats", { tile: "32x32", elem: "f32", family: "any", accesses: "st.32 @ 32:1\nld.32 @ 32:32" }],
      ["the same by padding", { tile: "32x32", elem: "f32", family: "padded", accesses: "st.32 @ 32:1\nld.32 @ 32:32" }],
      ["a TMA swizzle", { tile: "64x64", elem: "bf16", family: "tma", accesses: "ldmatrix.x4 @ (16,2):(64,8)" }],
    ],
    atom: [
      ["mma.m16n8k16.f16", { name: "mma.m16n8k16.f16", operand: "" }],
      ["ldmatrix.x4.trans", { name: "ldmatrix.x4.trans", operand: "" }],
      ["wgmma.m64n64k16.bf16", { name: "wgmma.m64n64k16.bf16", operand: "D" }],
      ["who has row 9, column 3?", { name: "mma.m16n8k16.f16", operand: "C", at: "9, 3" }],
    ],
    gemm: [
      ["tensor cores, halves", DEFAULTS.gemm],
      ["SGEMM", { plan: "sgemm-maxas-64", trans: "nt", m: "100", n: "70", k: "33" }],
    ],
  };

  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const sections = Object.fromEntries(Object.keys(DEFAULTS).map((view) => [view, document.getElementById(view)]));
  const field = (view, name) => $(`[name="${name}"]`, sections[view]);
  const out = (view, name) => $(`[data-out="${name}"]`, sections[view]);

  // ---- dark or light, before anything is drawn

  const theme = document.getElementById("theme");
  const setTheme = (name) => {
    document.documentElement.dataset.theme = name;
    theme.textContent = name === "dark" ? "Light" : "Dark";
  };
  // Storage may be refused: then the choice lasts as long as the page.
  const storage = (action) => {
    try {
      return action(localStorage);
    } catch {
      return null;
    }
  };
  const preferred = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  setTheme(storage((kept) => kept.getItem("theme")) ?? preferred);
  theme.addEventListener("click", () => {
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    storage((kept) => kept.setItem("theme", document.documentElement.dataset.theme));
  });

  // ---- the modules: layouts here and in a worker, kernels in a worker

  let layouts;
  try {
    layouts = await compile(LAYOUTS);
  } catch (error) {
    const place = document.getElementById("failure");
    place.textContent = `This browser does not take the page's module: ${error.message}`;
    place.hidden = false;
    throw error;
  }
  const ask = engine(layouts);
  // The kernels' module is compiled when a kernel is asked for.
  let kernels = null;
  const moduleOf = (view) => {
    if (view !== "gemm") return layouts;
    kernels ??= compile(document.getElementById("kernels").textContent);
    return kernels;
  };
  const workerText = `const instantiate = ${instantiate};
    const engine = ${engine};
    let ask = null;
    onmessage = ({ data }) => {
      if (data.module) ask = engine(data.module);
      else postMessage({ number: data.number, answer: ask(data.question) });
    };`;
  // One worker for each view that has slow questions: a new question ends the work on the old one, whose answer is then null.
  const workers = {};
  const askLater = async (view, question) => {
    const state = (workers[view] ??= { number: 0, worker: null, busy: false });
    if (state.busy) stopWorker(view);
    const number = (state.number += 1);
    const failed = (message) => ({ error: { code: "worker", shown: `error: ${message}` } });
    let module;
    try {
      module = await moduleOf(view);
    } catch (error) {
      return failed(error.message);
    }
    if (state.number !== number) return null;
    if (!state.worker) {
      const url = URL.createObjectURL(new Blob([workerText], { type: "text/javascript" }));
      state.worker = new Worker(url);
      URL.revokeObjectURL(url);
      state.worker.postMessage({ module });
    }
    state.busy = true;
    return new Promise((resolve) => {
      state.cancel = () => resolve(null);
      state.worker.onmessage = ({ data }) => {
        if (data.number !== number) return;
        state.busy = false;
        resolve(data.answer);
      };
      state.worker.onerror = (event) => {
        state.busy = false;
        state.worker = null;
        resolve(failed(event.message || "the worker does not start"));
      };
      state.worker.postMessage({ number, question });
    });
  };
  const stopWorker = (view) => {
    const state = workers[view];
    if (!state) return;
    // Also for a question that waits for its module.
    state.number += 1;
    if (!state.worker) return;
    state.worker.terminate();
    state.worker = null;
    if (state.busy) state.cancel();
    state.busy = false;
  };

  // ---- the state: in the fields, and in the address

  const valueOf = (input) => (input.type === "checkbox" ? (input.checked ? "1" : "") : input.value);
  const setValue = (input, value) => {
    if (input.type === "checkbox") {
      input.checked = value === "1";
      return;
    }
    input.value = value;
    // A select shows only what it offers; anything else in the address is added, so that the answer can refuse it by name.
    if (input.tagName === "SELECT" && input.value !== value) {
      input.append(new Option(value, value));
      input.value = value;
    }
  };
  const fieldsOf = (view) => Object.fromEntries(Object.keys(DEFAULTS[view]).map((name) => [name, valueOf(field(view, name))]));
  const addressOf = (view, fields) => {
    const shown = new URLSearchParams({ view });
    for (const [name, value] of Object.entries(fields)) if (value !== DEFAULTS[view][name]) shown.set(name, value);
    return `#${shown}`;
  };
  const readAddress = () => {
    const given = new URLSearchParams(location.hash.slice(1));
    const view = given.get("view") in DEFAULTS ? given.get("view") : "layout";
    const fields = { ...DEFAULTS[view] };
    for (const name of Object.keys(fields)) if (given.has(name)) fields[name] = given.get(name);
    return { view, fields };
  };

  let current = "layout";
  const show = ({ view, fields }) => {
    current = view;
    for (const [name, section] of Object.entries(sections)) {
      section.hidden = name !== view;
      const tab = document.getElementById(`tab-${name}`);
      tab.setAttribute("aria-selected", name === view);
      tab.tabIndex = name === view ? 0 : -1;
    }
    for (const [name, value] of Object.entries(fields)) setValue(field(view, name), value);
    answer[view](fields);
  };
  const go = (view, fields) => {
    history.pushState(null, "", addressOf(view, fields));
    show({ view, fields });
  };

  // ---- answers

  // Shows why a question was refused, with the place underlined; what was answered before stays, dimmed.
  const refused = (view, error) => {
    const place = $(".error", sections[view]);
    place.hidden = !error;
    place.textContent = error?.shown.trimEnd() ?? "";
    sections[view].toggleAttribute("data-stale", Boolean(error));
    return Boolean(error);
  };
  const element = (name, text, className) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const fillTable = (table, head, rows) => {
    table.replaceChildren();
    if (rows.length === 0) return;
    if (head) {
      const line = table.createTHead().insertRow();
      for (const text of head) line.append(element("th", text));
    }
    const body = table.createTBody();
    for (const row of rows) {
      const line = body.insertRow();
      row.forEach((text, i) => line.append(head || i > 0 ? element("td", text, "code") : element("th", text)));
    }
  };
  const drawInto = (place, html, picked) => {
    const host = element("div", undefined, "picture");
    const root = host.attachShadow({ mode: "open" });
    // The module escapes whatever comes from the fields.
    root.innerHTML = html;
    place.append(host);
    return attachPicture(root, picked);
  };

  // The cells of a picture that a text asks for, `T5 V2`, `T5` or `3, 4`, with an answer a line; null for no question.
  const whereIs = ({ panels }, text) => {
    if (!text.trim()) return null;
    const thread = /^\s*t(?:hread)?\s*(\d+)(?:[\s,]*v(?:alue)?\s*(\d+))?\s*$/i.exec(text);
    const place = /^\s*\(?\s*(\d+)\s*[,\s]\s*(\d+)\s*\)?\s*$/.exec(text);
    if (!thread && !place) return { wanted: null, lines: [`“${text}” is no thread and value (T5 V2), thread (T5), or row and column (3, 4)`] };
    const label = (axis, i) => axis.scale * (axis.first + i);
    const wanted = (panel, cell) => {
      const block = panel.cells.block[cell] === null ? null : panel.blocks[panel.cells.block[cell]];
      const [row, col] = [Math.floor(cell / panel.cols.count), cell % panel.cols.count];
      if (!block) return false;
      if (place) return label(panel.rows, row) === Number(place[1]) && label(panel.cols, col) === Number(place[2]);
      return block.lanes.includes(Number(thread[1])) && (thread[2] === undefined || block.value === Number(thread[2]));
    };
    const lines = panels.map((panel) => {
      const found = [];
      for (let cell = 0; cell < panel.rows.count * panel.cols.count; cell += 1) {
        if (!wanted(panel, cell)) continue;
        const block = panel.blocks[panel.cells.block[cell]];
        const [row, col] = [label(panel.rows, Math.floor(cell / panel.cols.count)), label(panel.cols, cell % panel.cols.count)];
        const value = block.value === null ? "" : ` V${block.value}`;
        found.push(place ? `thread ${block.lanes[0]}${block.value === null ? "" : `, value ${block.value}`}` : `(${row}, ${col})${thread[2] === undefined ? value : ""}`);
      }
      const most = 16;
      const shown = found.slice(0, most).join("; ") + (found.length > most ? `; … ${found.length} in all` : "");
      return `${panel.title.split(":")[0]}: ${shown || "nowhere in what is drawn"}`;
    });
    return { wanted, lines };
  };

  const answer = {
    layout(fields) {
      const found = ask({ ask: "layout", ...fields, banks: fields.banks === "1" });
      if (refused("layout", found.error)) return;
      // The picture has the layout as its heading.
      out("layout", "text").textContent = found.picture ? "" : found.text;
      const place = out("layout", "picture");
      place.replaceChildren();
      if (found.picture) drawInto(place, found.picture);
      document.documentElement.dataset.picture ??= Math.round(performance.now());
      fillTable(out("layout", "properties"), null, found.properties ?? []);
      const code = found.kind === "layout" ? ask({ ask: "code", layout: fields.layout, target: fields.target }) : {};
      out("layout", "code").textContent = code.code ?? code.error?.shown ?? "";
    },
    compare(fields) {
      const place = out("compare", "pictures");
      const found = [];
      for (const name of ["one", "other"]) {
        const one = ask({ ask: "layout", layout: fields[name], elem: fields.elem, before: "none" });
        if (refused("compare", one.error)) return;
        if (refused("compare", one.picture ? null : { shown: `error: ${fields[name]} is no layout; it is ${one.text}` })) return;
        found.push(one);
      }
      place.replaceChildren();
      const [a, b] = found.map((one) => drawInto(place, one.picture));
      const [one, other] = [a.data.panels[0], b.data.panels[0]];
      const text = out("compare", "text");
      const shape = (panel) => `${panel.rows.count}x${panel.cols.count}`;
      if (shape(one) !== shape(other)) {
        text.textContent = `Shapes differ as they are drawn: ${shape(one)} and ${shape(other)}.`;
        return;
      }
      const differs = (_, cell) => one.cells.offset[cell] !== other.cells.offset[cell];
      a.mark(differs);
      b.mark(differs);
      const cells = one.cells.offset.map((_, cell) => cell);
      const at = cells.filter((cell) => differs(one, cell));
      const first = at[0];
      text.textContent = at.length
        ? `${at.length} of ${cells.length} elements differ; the first at (${Math.floor(first / one.cols.count)}, ${first % one.cols.count}): offset ${one.cells.offset[first]} and ${other.cells.offset[first]}.`
        : `All ${cells.length} elements that are drawn have the same offset.`;
    },
    async derive(fields) {
      const found = await askLater("derive", { ask: "derive", ...fields });
      if (found === null || refused("derive", found.error)) return;
      out("derive", "text").textContent = found.layout ?? found.rotation?.formula ?? "a general F2 map, which is no layout";
      out("derive", "summary").textContent = found.summary;
      const place = out("derive", "pictures");
      place.replaceChildren();
      for (const one of found.pictures) drawInto(place, one.picture);
    },
    atom(fields) {
      const names = $("#atoms");
      if (!names.firstChild) for (const name of ask({ ask: "atoms" }).atoms) names.append(new Option(name));
      const found = ask({ ask: "atom", name: fields.name, operand: fields.operand });
      if (refused("atom", found.error)) return;
      const place = out("atom", "picture");
      place.replaceChildren();
      const picture = drawInto(place, found.picture, (panel, row, col) => {
        const [r, c] = [panel.rows.scale * (panel.rows.first + row), panel.cols.scale * (panel.cols.first + col)];
        const asked = { ...fieldsOf("atom"), at: `${r}, ${c}` };
        field("atom", "at").value = asked.at;
        history.replaceState(null, "", addressOf("atom", asked));
        tell(asked.at);
      });
      const tell = (at) => {
        const where = whereIs(picture.data, at);
        out("atom", "at").textContent = where?.lines.join("\n") ?? "";
        picture.mark(where?.wanted ?? null);
      };
      tell(fields.at);
    },
    async gemm(fields) {
      stopWorker("gemm");
      setRunning(false);
      const status = out("gemm", "status");
      status.className = "value";
      status.textContent = "proving …";
      if (!(await listPlans(fields.plan))) return;
      const found = await askLater("gemm", { ask: "plan", ...fields });
      if (found === null) return;
      status.textContent = "";
      if (refused("gemm", found.error)) return;
      fillTable(out("gemm", "accesses"), ["shared access", "instruction", "proven wavefronts", "ideal"], found.accesses.map((a) => [a.access, a.op, a.wavefronts, a.ideal]));
      fillTable(out("gemm", "layouts"), ["name", "layout", "meaning"], found.layouts.map((l) => [l.name, l.layout, l.meaning]));
      fillTable(out("gemm", "proofs"), ["obligation", "evidence"], found.proofs.map((p) => [p.name, p.evidence]));
      out("gemm", "ptx").textContent = found.ptx;
      status.textContent = `${found.plan}: proven, ${found.threads} threads a block, ${found.arch} and later`;
    },
  };

  // Fills the list of plans once; false if it is not there, or no longer asked for.
  let listed = false;
  const listPlans = async (chosen) => {
    if (listed) return true;
    const found = await askLater("gemm", { ask: "plans" });
    if (found === null) return false;
    if (refused("gemm", found.error)) {
      out("gemm", "status").textContent = "";
      return false;
    }
    const select = field("gemm", "plan");
    select.replaceChildren(...found.plans.map((plan) => new Option(`${plan.plan}   ${plan.dtype}, ${plan.arch}, tile ${plan.tile}`, plan.plan)));
    setValue(select, chosen);
    listed = true;
    return true;
  };
  const setRunning = (running) => {
    field("gemm", "stop").hidden = !running;
    $('button[type="submit"]', sections.gemm).disabled = running;
  };
  const runProduct = async () => {
    const fields = fieldsOf("gemm");
    const status = out("gemm", "status");
    setRunning(true);
    status.className = "value";
    status.textContent = `running ${fields.m}x${fields.n}x${fields.k} on the emulator …`;
    const started = performance.now();
    const found = await askLater("gemm", { ask: "run", ...fields });
    if (found === null) return;
    setRunning(false);
    if (refused("gemm", found.error)) {
      status.textContent = "";
      return;
    }
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    const many = found.lane_instructions?.toLocaleString("en") ?? "no";
    status.className = `value ${found.passed ? "good" : "bad"}`;
    status.textContent = `${found.passed ? "passed" : "FAILED"}: error ${found.max_rel_err.toExponential(2)} relative, ${found.max_abs_err.toExponential(2)} absolute (tolerance ${found.tolerance.toExponential(2)}), ${found.findings.length} findings, ${many} lane instructions in ${seconds} s`;
    const counted = (range) => (range === null ? "not executed" : range[0] === range[1] ? String(range[0]) : `${range[0]} to ${range[1]}`);
    fillTable(
      out("gemm", "accesses"),
      ["shared access", "instruction", "proven wavefronts", "ideal", "counted on the emulator"],
      found.accesses.map((a) => [a.access, a.op, a.wavefronts, a.ideal, counted(a.measured)]),
    );
  };

  // ---- what the reader does

  for (const select of $$('select[name="elem"]')) select.append(...ELEMENTS.map((name) => new Option(name)));
  for (const [view, list] of Object.entries(EXAMPLES)) {
    const place = $(".examples span", sections[view]);
    for (const [text, fields] of list) {
      const link = element("a", text);
      link.href = addressOf(view, { ...DEFAULTS[view], ...fields });
      place.append(link);
    }
  }
  let waiting = 0;
  for (const [view, section] of Object.entries(sections)) {
    const change = () => {
      const fields = fieldsOf(view);
      history.replaceState(null, "", addressOf(view, fields));
      clearTimeout(waiting);
      waiting = setTimeout(() => answer[view](fields), ["layout", "compare", "atom"].includes(view) ? 60 : 300);
    };
    section.addEventListener("input", change);
    $("form", section).addEventListener("submit", (event) => {
      event.preventDefault();
      if (view === "gemm") runProduct();
    });
  }
  field("gemm", "stop").addEventListener("click", () => {
    stopWorker("gemm");
    setRunning(false);
    out("gemm", "status").textContent = "stopped";
  });
  const tabs = $$('[role="tab"]');
  const viewOf = (tab) => tab.getAttribute("aria-controls");
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => go(viewOf(tab), fieldsOf(viewOf(tab))));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      const next = tabs[(i + step + tabs.length) % tabs.length];
      next.focus();
      next.click();
    });
  });
  // Links, the back button and an edited address: all are a state to show.
  addEventListener("hashchange", () => show(readAddress()));
  document.getElementById("copy").addEventListener("click", async () => {
    const place = document.getElementById("copied");
    try {
      await navigator.clipboard.writeText(location.href);
      place.textContent = "copied";
    } catch {
      place.textContent = location.href;
    }
  });

  // Every view has its defaults; then the one that the address names is shown.
  for (const [view, fields] of Object.entries(DEFAULTS)) {
    for (const [name, value] of Object.entries(fields)) setValue(field(view, name), value);
  }
  show(readAddress());
  document.documentElement.dataset.ready = Math.round(performance.now());
})();
