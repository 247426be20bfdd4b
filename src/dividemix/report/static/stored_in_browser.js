// Where the page of a file stores decisions: in the browser, under the run's id.

const STORAGE_KEY = `dividemix-review-${DATA.run}`;

const STORE = {
  /** Whether the browser stores the decisions. Some do not for pages opened from a file. */
  works: true,
  note: "This browser does not store decisions for a page opened from a file: download the corrections before you close it.",
  /** All decisions: a list of [index, action, label]. */
  load() {
    try {
      const stored = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "[]");
      return Array.isArray(stored) ? stored : [];
    } catch {
      STORE.works = false;
      return [];
    }
  },
  save(changes, everything) {
    try {
      localStorage.setItem(STORAGE_KEY, JSON.stringify(everything));
      STORE.works = true;
    } catch {
      STORE.works = false;
    }
  },
  /** Call changed(decisions) when another tab has decided. */
  watch(changed) {
    window.addEventListener("storage", (event) => {
      if (event.key === STORAGE_KEY) changed(STORE.load());
    });
  },
};
