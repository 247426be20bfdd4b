// The dialog to choose another class: type to search the list, move with the arrow keys.

const MAX_OPTIONS = 200;

/** Ask for the class of the sample. Calls chosen(name) with the answer. */
function chooseClass(sample, chosen) {
  const dialog = $("#choose");
  const input = $("input", dialog);
  const list = $("#choose-options");
  const likely = sample.likely.map(([label]) => label);
  const ordered = [...new Set([...likely, ...DATA.classes.keys()])];
  let options = [];
  let active = 0;

  const mark = () => {
    options.forEach((option, i) => option.setAttribute("aria-selected", i === active));
    if (options.length) input.setAttribute("aria-activedescendant", options[active].id);
    else input.removeAttribute("aria-activedescendant");
    options[active]?.scrollIntoView({ block: "nearest" });
  };
  const option = (id, text, hint) =>
    h("li", { role: "option", id: `choose-${id}`, onclick: () => take(text) }, name(text), hint ? h("small", {}, hint) : null);
  const search = () => {
    const text = input.value.trim();
    const found = ordered.filter((label) => className(label).toLowerCase().includes(text.toLowerCase()));
    options = found.slice(0, MAX_OPTIONS).map((label) => {
      const place = likely.indexOf(label);
      return option(label, className(label), label === sample.given ? "given" : place >= 0 ? percent(sample.likely[place][1]) : "");
    });
    // Folders and text tables can have a new class. Numbered labels cannot.
    if (text && DATA.can_add_classes && !DATA.classes.includes(text)) options.push(option("new", text, "a new class"));
    active = 0;
    list.replaceChildren(...options);
    if (!options.length) list.append(h("li", { class: "none" }, "No class name contains this."));
    mark();
  };
  const take = (text) => {
    dialog.close();
    chosen(text);
  };
  const key = (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && options.length) {
      event.preventDefault();
      active = (active + by + options.length) % options.length;
      mark();
    } else if (event.key === "Enter" && options.length && !event.isComposing) {
      event.preventDefault();
      options[active].click();
    }
  };

  $(".choose-sample", dialog).replaceChildren(showSample(sample, "small"));
  input.value = "";
  input.oninput = search;
  input.onkeydown = key;
  search();
  dialog.showModal();
  input.focus();
}
