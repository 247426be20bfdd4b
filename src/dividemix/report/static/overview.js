// The headline: a few figures, and sentences that say what they mean.

function showOverview() {
  const section = $("#overview");
  const kept = DATA.rows.find((row) => row.epoch === DATA.kept_epoch) ?? DATA.rows.at(-1) ?? {};
  const figures = [["Labels", count(DATA.num_samples)]];
  figures.push(["Flagged as probably wrong", `${count(DATA.num_issues)} (${percent(DATA.num_issues / DATA.num_samples)})`]);
  if (isNumber(kept.test_acc)) figures.push(["Test accuracy", `${kept.test_acc.toFixed(1)}\u00a0%`]);
  else if (isNumber(kept.val_acc)) {
    const what = valIsClean() ? "Accuracy on clean validation images" : "Agreement with labels held out";
    figures.push([what, `${kept.val_acc.toFixed(1)}\u00a0%`]);
  }
  if (DATA.num_skipped) figures.push(["Unreadable files, skipped", count(DATA.num_skipped)]);
  $(".figures", section).append(...terms(figures));
  const sentences = [aboutNoise(kept), aboutAgreement(kept)].filter((text) => text);
  $(".meaning", section).append(
    ...DATA.cautions.map((text) => h("p", { class: "caution" }, text)),
    ...sentences.map((text) => h("p", {}, text)),
  );
}

/** How the figures about noise belong together. */
function aboutNoise(kept) {
  const divisions = DATA.divisions.filter((division) => division.epoch === kept.epoch);
  const labeled = kept.num_labeled?.filter(isNumber) ?? [];
  let steps = "";
  if (divisions.length && labeled.length) {
    const mean = (values) => total(values) / values.length;
    const ignored = 1 - mean(labeled) / (kept.num_divided ?? DATA.num_samples);
    steps = ` In epoch ${kept.epoch}, whose networks were kept, the losses alone made ${percent(mean(divisions.map(mixtureShare)))} of the labels look wrong, and training ignored ${percent(ignored)}: these are steps on the way, not estimates.`;
  }
  const truth = DATA.quality ? ` In truth ${percent(DATA.quality.num_wrong / DATA.num_samples)} are wrong.` : "";
  const flagged = "A label is flagged if the networks doubt it and predict another class.";
  const estimate = DATA.expected || "The flagged labels are the estimate of how many are wrong.";
  return `${estimate} ${flagged}${steps}${truth}`;
}

/** Without test images: what the agreement with labels that may be wrong can say. */
function aboutAgreement(kept) {
  if (isNumber(kept.test_acc) || !isNumber(kept.val_acc) || valIsClean()) return "";
  const held = isNumber(kept.num_val) ? `${count(kept.num_val)} samples` : "samples";
  let most = "";
  if (isNumber(DATA.noise_rate)) {
    most = ` If ${percent(DATA.noise_rate)} of them are wrong, a model that is always right agrees with about ${percent(1 - DATA.noise_rate)}.`;
  }
  return `The accuracy is not known, because there are no test samples with right labels. The networks agree with ${kept.val_acc.toFixed(0)}\u00a0% of the given labels of ${held} that they were not trained on.${most}`;
}
