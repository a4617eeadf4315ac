// Keeps the page of a running job up to date. Without it, reloading the page does the same.
(() => {
  "use strict";
  const live = document.querySelector("#live[data-follow]");
  if (!live || !window.EventSource) return;
  const note = document.getElementById("live-note");
  const source = new EventSource(live.dataset.follow);
  // What the server last said of each part, so that one that is as it was keeps what its reader has unfolded or typed.
  const known = new Map([...live.querySelectorAll("[data-part]")].map((part) => [part.id, part.outerHTML]));
  let busy = false;
  let again = false;

  const place = (fresh) => {
    const text = fresh.outerHTML;
    if (known.get(fresh.id) === text) return;
    known.set(fresh.id, text);
    const old = document.getElementById(fresh.id);
    if (!old) {
      document.getElementById(fresh.parentElement.id).append(fresh);
      return;
    }
    const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
    for (const details of old.querySelectorAll("details[id][open]")) {
      const twin = fresh.querySelector(`#${CSS.escape(details.id)}`);
      if (twin) twin.open = true;
    }
    old.replaceWith(fresh);
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  };

  const refresh = async () => {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      const answer = await fetch(live.dataset.partUrl, { credentials: "same-origin", cache: "no-store" });
      if (!answer.ok) {
        stop(answer.status === 401 ? "You are logged out. Reload the page to log in." : "Live updates have stopped. Reload the page.");
        return;
      }
      const template = document.createElement("template");
      template.innerHTML = await answer.text();
      const parts = [...template.content.querySelectorAll("[data-part]")];
      const final = template.content.querySelector("[data-final]");
      parts.forEach(place);
      document.getElementById("no-visits")?.toggleAttribute("hidden", document.querySelector("#visits [data-part]") !== null);
      if (final) stop("");
    } catch {
      note.textContent = "The server does not answer. Trying again.";
    } finally {
      busy = false;
    }
    if (again) {
      again = false;
      setTimeout(refresh, 250);
    }
  };

  const stop = (text) => {
    source.close();
    note.textContent = text;
  };

  note.textContent = "Live: this page follows the job.";
  source.onopen = () => { note.textContent = "Live: this page follows the job."; };
  source.onmessage = refresh;
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) refresh().then(() => { if (note.textContent) note.textContent = "Live updates have stopped. Reload the page."; });
    else note.textContent = "The connection broke. Trying again.";
  };
})();
