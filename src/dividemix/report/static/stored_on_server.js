// Where the page of `dividemix review` stores decisions: on the disk, by its server. Only changes are sent, so that two
// tabs do not undo each other's decisions.

let revision = DATA.revision;
let unsent = [];
let isSending = false;
let tell = () => {};

const STORE = {
  works: true,
  note: "The server does not answer, so the last decisions are not on the disk yet. Start dividemix review again: this page sends them when you return to it.",
  load: () => DATA.decisions,
  save(changes) {
    unsent.push(...changes);
    send();
  },
  watch(changed) {
    tell = changed;
    const look = () => document.visibilityState === "visible" && (unsent.length ? send() : refresh());
    window.addEventListener("focus", look);
    document.addEventListener("visibilitychange", look);
    window.addEventListener("beforeunload", (event) => {
      if (unsent.length) event.preventDefault();
    });
  },
};

async function ask(options) {
  const answer = await fetch("decisions", { cache: "no-store", credentials: "omit", ...options });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

/** Send what is not on the disk yet, in the order in which it was decided. */
async function send() {
  if (isSending || !unsent.length) return;
  isSending = true;
  const part = unsent.slice();
  try {
    const body = JSON.stringify({ changes: part });
    const answer = await ask({ method: "POST", headers: { "Content-Type": "application/json" }, body });
    unsent = unsent.slice(part.length);
    STORE.works = true;
    const others = answer.revision !== revision + 1;
    revision = answer.revision;
    isSending = false;
    if (unsent.length) send();
    else if (others) await refresh();
    else showProgress();
  } catch {
    STORE.works = false;
    isSending = false;
    showProgress();
  }
}

/** Take over what another tab has decided. */
async function refresh() {
  try {
    const answer = await ask({});
    STORE.works = true;
    if (!unsent.length && answer.revision !== revision) {
      revision = answer.revision;
      tell(answer.decisions);
    }
  } catch {
    STORE.works = unsent.length === 0;
  }
  showProgress();
}
