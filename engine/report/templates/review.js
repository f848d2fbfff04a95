"use strict";
(() => {
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const get = (id) => document.getElementById(id);
  const say = (text) => { get("said").textContent = text; };
  const file = JSON.parse(get("file").textContent);
  const rows = all(".review tbody tr");
  const chosen = file.statuses.map(() => "left");
  const words = { accepted: "accepted", left: "left as it is", rejected: "rejected" };
  const past = [];
  let current = null, handed = "";

  // The file is its text with the chosen statuses between the pieces.
  const text = () => file.pieces[0] + file.statuses.map((status, i) => status[chosen[i]] + file.pieces[i + 1]).join("");
  const changed = () => chosen.some((one) => one !== "left") && chosen.join() !== handed;
  const download = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text()], { type: "application/yaml" }));
    link.download = file.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    handed = chosen.join();
    say(`${file.name} was handed to the browser`);
  };
  get("download").addEventListener("click", download);
  addEventListener("beforeunload", (event) => { if (changed()) event.preventDefault(); });

  const count = () => {
    const of = (status) => chosen.filter((one) => one === status).length;
    const said = ["accepted", "rejected"].filter(of).map((status) => `${of(status).toLocaleString("en")} ${status}`);
    get("decided").textContent = said.length ? `${said.join(", ")} here` : "Nothing decided";
  };
  const choose = (row, status, undoable = true) => {
    const number = row.dataset.switch;
    if (number === "") return;
    if (undoable) past.push([row, chosen[number]]);
    chosen[number] = status;
    all("input", row).forEach((input) => { input.checked = input.value === status; });
    count();
    say(`${row.querySelector("code").textContent}: ${words[status]}`);
  };
  for (const row of rows) {
    all("input", row).forEach((input) => input.addEventListener("change", () => { mark(row); choose(row, input.value); }));
    all("fieldset", row).forEach((fieldset) => { fieldset.disabled = false; });
    row.addEventListener("focusin", () => mark(row));
  }

  // One rule is the current one: keys are about it.
  const shown = () => rows.filter((row) => !row.hidden);
  const mark = (row) => {
    current?.classList.remove("current");
    current?.removeAttribute("aria-current");
    current = row;
    row?.classList.add("current");
    row?.setAttribute("aria-current", "true");
  };
  const go = (row) => {
    if (!row) return;
    mark(row);
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  };
  const step = (by) => {
    const some = shown(), at = some.indexOf(current);
    go(at < 0 ? some[0] : some[Math.min(Math.max(at + by, 0), some.length - 1)]);
  };
  const decide = (status) => {
    if (!current || current.hidden) { step(0); return; }
    choose(current, status);
    step(1);
  };
  const back = () => {
    const last = past.pop();
    if (!last) { say("There is nothing to undo"); return; }
    choose(...last, false);
    go(last[0]);
  };

  // The filter and the search leave what has the status, and all words.
  const search = get("search"), filter = get("filter");
  const texts = new Map(rows.map((row) => [row, row.querySelector(".rule").textContent.toLowerCase()]));
  const find = () => {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const kept = !filter.value || row.dataset.status === filter.value;
      row.hidden = !kept || !wanted.every((word) => texts.get(row).includes(word));
    }
    const found = shown().length;
    get("found").textContent = wanted.length ? `${found.toLocaleString("en")} found` : "";
    get("nothing").hidden = found > 0;
  };
  search.addEventListener("input", find);
  filter.addEventListener("change", find);

  const keys = {
    a: () => decide("accepted"), r: () => decide("rejected"), s: () => decide("left"), b: back,
    j: () => step(1), k: () => step(-1),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === search) {
      if (event.key === "Escape") { search.value = ""; find(); search.blur(); }
      return;
    }
    if (event.target.tagName === "SELECT") return;
    if (event.key === "/") { event.preventDefault(); search.focus(); return; }
    keys[event.key]?.();
  });

  all(".tools").forEach((tools) => { tools.hidden = false; });
  find();
  mark(shown()[0] ?? null);
})();
