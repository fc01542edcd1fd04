(() => {
  "use strict";
  const form = document.getElementById("filter");
  if (!form) return;
  const findings = [...document.querySelectorAll("article.finding")].map((element) => {
    const target = element.closest("details.target");
    const name = target ? target.querySelector("summary").textContent : "";
    return { element, target, text: (name + " " + element.textContent).toLowerCase() };
  });
  const targets = [...document.querySelectorAll("details.target")].map((element) => ({
    element,
    text: element.querySelector("summary").textContent.toLowerCase(),
    wasOpen: element.open,
  }));
  const apply = () => {
    const severities = new Set([...form.querySelectorAll("[name=severity]:checked")].map((box) => box.value));
    const all = severities.size === form.querySelectorAll("[name=severity]").length;
    const code = form.elements.code.value;
    const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const narrowed = !all || code !== "" || words.length > 0;
    const kept = new Set();
    let shown = 0;
    for (const { element, target, text } of findings) {
      const fits =
        severities.has(element.dataset.severity) &&
        (code === "" || element.dataset.code === code) &&
        words.every((word) => text.includes(word));
      element.hidden = !fits;
      if (fits) {
        shown += 1;
        kept.add(target);
      }
    }
    for (const { element, text, wasOpen } of targets) {
      // An operator without findings is found by its name alone.
      const named = all && code === "" && words.every((word) => text.includes(word));
      element.hidden = narrowed && !kept.has(element) && !named;
      element.open = narrowed ? kept.has(element) : wasOpen;
    }
    form.elements.shown.value = `${shown} of ${findings.length} findings`;
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  apply();
})();
