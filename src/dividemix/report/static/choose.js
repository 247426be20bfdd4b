// The dialog that chooses another class: a list searched by typing, moved through with the arrows.

const MAX_OPTIONS = 200;

/** Ask for a class name for the sample; calls chosen(name) if one is taken. */
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
    // A new class can stand in a table of text or name a folder; numbered labels cannot be added to.
    if (text && DATA.can_add_classes && !DATA.classes.includes(text)) options.push(option("new", text, "a new class"));
    active = 0;
    list.replaceChildren(...options);
    if (!options.length) list.append(h("li", { class: "none" }, "No class has this in its name."));
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

  const picture = $("img", dialog);
  picture.hidden = !sample.image;
  if (sample.image) picture.src = sample.image;
  input.value = "";
  input.oninput = search;
  input.onkeydown = key;
  search();
  dialog.showModal();
  input.focus();
}
