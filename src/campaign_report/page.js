"use strict";
// Filters are kept in the address, so that a filtered page can be linked to: #findings?cause=framework&op=linear
(() => {
  const form = document.getElementById("filters");
  if (!form) return;
  const rows = [...document.querySelectorAll("details.finding")];
  const shown = document.getElementById("shown");
  const apply = () => {
    const wanted = [...new FormData(form)].filter(([, value]) => value);
    let count = 0;
    for (const row of rows) {
      row.hidden = wanted.some(([name, value]) => row.dataset[name] !== value);
      if (!row.hidden) count += 1;
    }
    shown.textContent = `${count} of ${rows.length} findings`;
  };
  form.addEventListener("change", () => {
    const wanted = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    history.replaceState(null, "", wanted.size ? `#findings?${wanted}` : "#findings");
    apply();
  });
  const read = () => {
    const [place, query] = location.hash.slice(1).split("?");
    if (query) for (const [name, value] of new URLSearchParams(query)) if (form.elements[name]) form.elements[name].value = value;
    const target = document.getElementById(place);
    if (target instanceof HTMLDetailsElement) target.open = true;
    if (query && target) target.scrollIntoView();
    apply();
  };
  addEventListener("hashchange", read);
  read();
})();
