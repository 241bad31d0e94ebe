"use strict";
// Filters are kept in the address, so that a filtered page can be linked to: #findings?cause=framework&op=linear
(() => {
  const open = () => {
    const target = document.getElementById(location.hash.slice(1).split("?")[0]);
    for (let at = target; at; at = at.parentElement) if (at instanceof HTMLDetailsElement) at.open = true;
    return target;
  };
  const form = document.getElementById("filters");
  if (!form) {
    addEventListener("hashchange", open);
    open();
    return;
  }
  const rows = [...document.querySelectorAll("details.finding")];
  const texts = new Map(rows.map((row) => [row, row.firstElementChild.textContent.toLowerCase()]));
  const wanted = () => [...new FormData(form)].filter(([, value]) => value);
  const passes = (row, [name, value]) => {
    switch (name) {
      case "executor": return row.dataset.executors.split(" ").includes(String(form.elements.executor.selectedIndex - 1));
      case "text": return texts.get(row).includes(value.toLowerCase());
      default: return row.dataset[name] === value;
    }
  };
  const apply = () => {
    const filters = wanted();
    let count = 0;
    for (const row of rows) {
      row.hidden = !filters.every((filter) => passes(row, filter));
      if (!row.hidden) count += 1;
    }
    document.getElementById("shown").textContent = `${count} of ${rows.length} shown`;
    document.getElementById("none").hidden = count > 0;
  };
  const changed = () => {
    const filters = new URLSearchParams(wanted());
    history.replaceState(null, "", filters.size ? `#findings?${filters}` : "#findings");
    apply();
  };
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(changed));
  const clear = () => {
    for (const field of form.elements) field.value = "";
  };
  const read = () => {
    const query = location.hash.split("?")[1];
    if (query !== undefined) {
      clear();
      for (const [name, value] of new URLSearchParams(query)) if (form.elements[name]) form.elements[name].value = value;
    }
    apply();
    const target = open();
    if (!target) return;
    // A filter must not hide what was linked to.
    if (target.hidden) {
      clear();
      apply();
    }
    target.scrollIntoView();
  };
  addEventListener("hashchange", read);
  read();
})();
