// One sample at a time, as large as the screen allows. Its decisions are those of the gallery: the bar moves here.

const large = $("#large");
let lastLarge = 0; // closing gives the focus to the card that had it before, and so makes that the current one

function openLarge() {
  if (large.open || !view.samples.length) return;
  large.append(bar);
  setReviewing(true);
  large.showModal();
  large.focus();
  showCurrent(); // the bar may have been hidden until now, and is empty then
}

/** Show the current sample, its path and the link to its file. */
function showLarge() {
  const sample = view.samples[view.current];
  if (!large.open || !sample) return;
  lastLarge = view.current;
  $("#large-title").textContent = `Sample ${sample.index}, ${count(view.current + 1)} of ${count(view.samples.length)}`;
  const decision = decisions.get(sample.index);
  $(".large-decision", large).textContent = decision ? decisionText(decision) : "";
  $(".large-sample", large).replaceChildren(showSample(sample, "large"));
  const original = sample.shown?.original;
  $(".large-path", large).replaceChildren(
    ...(sample.path === null ? [] : [name(sample.path, "path")]),
    ...(original ? [h("a", { href: original, target: "_blank", rel: "noopener noreferrer" }, "Open the original")] : []),
  );
}

large.addEventListener("close", () => {
  $("#review").append(bar);
  focusCard(lastLarge);
});
$(".large-close", large).addEventListener("click", () => large.close());
