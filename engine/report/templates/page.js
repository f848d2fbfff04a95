"use strict";
(() => {
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const say = (text) => { document.getElementById("said").textContent = text; };

  // Tables are sorted by their headings: once down, twice up; figures before words, what is empty last.
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    const text = (cell.dataset.key ?? cell.firstChild?.textContent ?? "").trim();
    const number = parseFloat(text.replace(/[,\s]/g, "").replace("−", "-"));
    return { text, number: /^[-−+]?[\d.]/.test(text) ? number : NaN };
  };
  const compare = (a, b, figures, sign) => {
    if (figures && (Number.isNaN(a.number) || Number.isNaN(b.number))) return Number.isNaN(a.number) - Number.isNaN(b.number);
    return sign * (figures ? a.number - b.number : a.text.localeCompare(b.text, undefined, { numeric: true }));
  };
  const sort = (table, heading) => {
    const column = heading.cellIndex, body = table.tBodies[0];
    const figures = heading.classList.contains("right");
    const before = heading.getAttribute("aria-sort");
    const falling = before === "none" ? figures && column > 0 : before === "ascending";
    all("th[aria-sort]", table.tHead).forEach((other) => other.setAttribute("aria-sort", "none"));
    heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
    const keyed = [...body.rows].map((row) => ({ row, key: keyOf(row, column) }));
    keyed.sort((a, b) => compare(a.key, b.key, figures, falling ? -1 : 1));
    body.append(...keyed.map((one) => one.row));
    say(`Sorted by ${heading.textContent.trim().replace("#", "rank")}, ${falling ? "descending" : "ascending"}`);
  };
  for (const table of all("table[data-sort]")) {
    for (const heading of all("th:not(.still)", table.tHead)) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      if (button.textContent === "#") button.setAttribute("aria-label", "rank");
      heading.append(button);
      heading.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => sort(table, heading));
    }
  }

  // The search leaves what has all of its words.
  const search = document.getElementById("search");
  const items = all(".item").map((item) => ({ item, text: null }));
  const find = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const one of items) {
      one.text ??= one.item.textContent.toLowerCase();
      one.item.hidden = !words.every((word) => one.text.includes(word));
      found += !one.item.hidden;
    }
    for (const section of all("main > section")) {
      section.hidden = words.length > 0 && !section.querySelector(".item:not([hidden])");
    }
    document.getElementById("found").textContent = words.length ? `${found.toLocaleString("en")} of ${items.length.toLocaleString("en")}` : "";
    document.getElementById("nothing").hidden = found > 0 || !words.length;
  };
  if (search) {
    search.addEventListener("input", find);
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !/INPUT|TEXTAREA/.test(event.target.tagName) && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        search.focus();
      } else if (event.key === "Escape" && event.target === search) {
        search.value = "";
        find();
      }
    });
  }

  const unfold = document.getElementById("unfold");
  const folds = all("main details");
  if (unfold && !folds.length) unfold.remove();
  unfold?.addEventListener("click", () => {
    const open = unfold.getAttribute("aria-pressed") !== "true";
    folds.forEach((one) => { one.open = open; });
    unfold.setAttribute("aria-pressed", String(open));
    unfold.textContent = open ? "Fold all" : "Unfold all";
  });

  // On paper everything is open that is open to nobody's click.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = folds.filter((one) => !one.open);
    opened.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((one) => { one.open = false; }));

  // A copy goes to the clipboard; where a browser forbids that, its text is shown, ready to be copied by hand.
  const texts = JSON.parse(document.getElementById("copies").textContent);
  const byHand = (button, text) => {
    const area = document.createElement("textarea");
    area.value = text;
    area.readOnly = true;
    area.rows = Math.min(8, text.split("\n").length);
    area.setAttribute("aria-label", button.getAttribute("aria-label"));
    button.closest(".rule").append(area);
    area.select();
    if (!document.execCommand("copy")) return false;
    area.remove();
    button.focus();
    return true;
  };
  const copy = async (button, text) => {
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      done = byHand(button, text);
    }
    button.dataset.said = done ? "copied" : "press Ctrl+C";
    say(`${button.getAttribute("aria-label")}: ${button.dataset.said}`);
    setTimeout(() => { delete button.dataset.said; }, 1600);
  };
  for (const group of all("[data-copies]")) {
    all("button", group).forEach((button, which) => {
      button.addEventListener("click", () => copy(button, texts[group.dataset.copies][which]));
    });
    group.hidden = false;
  }
  all(".tools").forEach((tools) => { tools.hidden = false; });
})();
