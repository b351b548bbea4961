// Timeball's own script. Every page works without it; with it, pages follow what happens.
const $ = (what, root = document) => root.querySelector(what);
const $$ = (what, root = document) => [...root.querySelectorAll(what)];
const { base, events } = document.body.dataset;

// Make `here` look like `there` and touch nothing else: focus, ticks and open menus stay.
function morph(here, there) {
  if (here.isEqualNode(there)) return;
  if (here.nodeType !== there.nodeType || here.nodeName !== there.nodeName || here.id !== there.id)
    return here.replaceWith(there);
  if (here.nodeType !== Node.ELEMENT_NODE) return void (here.data = there.data);
  const kept = here.nodeName === "DETAILS" ? ["open"] : here.matches("[data-player]") ? ["hidden"] : [];
  for (const { name } of [...here.attributes])
    if (!there.hasAttribute(name) && !kept.includes(name)) here.removeAttribute(name);
  for (const { name, value } of [...there.attributes])
    if (here.getAttribute(name) !== value && !kept.includes(name)) here.setAttribute(name, value);
  const known = new Map([...here.children].filter((c) => c.id).map((c) => [c.id, c]));
  let at = here.firstChild;
  for (const want of [...there.childNodes]) {
    const same = want.id && known.get(want.id);
    if (same) {
      if (same === at) at = at.nextSibling;
      else here.insertBefore(same, at);
      morph(same, want);
    } else if (at && !(at.id && known.has(at.id)) && !want.id) {
      const next = at.nextSibling;
      morph(at, want);
      at = next;
    } else here.insertBefore(want, at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function take(page) {
  for (const region of $$("[data-live]")) {
    const fresh = page.getElementById(region.id);
    if (fresh) morph(region, fresh);
  }
  enhance();
}

const GAP_MS = 500; // at most two updates a second
let busy = false, again = false, hovered = 0;
async function refresh() {
  if (document.hidden) return void (again = true);
  if (busy) return void (again = true);
  busy = true;
  again = false;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (answer.ok) take(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch { /* the server is away: the stream says when it is back */ }
  setTimeout(() => { busy = false; if (again) refresh(); }, GAP_MS);
}

let stream, missed = false;
function follow() {
  stream?.close();
  stream = undefined;
  const live = $("#live");
  if (!events || document.hidden) return;
  live.hidden = false;
  stream = new EventSource(events);
  stream.addEventListener("tick", refresh);
  stream.onopen = () => {
    if (missed) refresh();
    missed = false;
    live.removeAttribute("data-off");
    live.lastElementChild.textContent = "live";
  };
  // The server ends a stream now and then, to be asked again who this is: it is not away.
  stream.addEventListener("again", () => { missed = true; follow(); });
  stream.onerror = () => {
    missed = true;
    live.setAttribute("data-off", "");
    live.lastElementChild.textContent = "away";
    if (stream?.readyState === EventSource.CLOSED) setTimeout(follow, 5000);
  };
}
document.addEventListener("visibilitychange", () => {
  follow();
  if (!document.hidden) refresh();
});

function toast(text) {
  $(".toast")?.remove();
  const box = document.createElement("output");
  box.className = "toast";
  box.textContent = text;
  $("main").append(box);
  setTimeout(() => box.remove(), 5000);
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.matches("[data-theme-form]")) {
    event.preventDefault();
    return theme(event.submitter);
  }
  if (!form.matches("[data-act]")) return;
  event.preventDefault();
  const button = event.submitter;
  button.disabled = true;
  try {
    const body = new URLSearchParams(new FormData(form, button));
    const answer = await fetch(button?.getAttribute("formaction") || form.action, { method: "POST", body, headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const told = $(".toast", page)?.textContent ?? $("main p", page)?.textContent ?? "";
    if (answer.ok && new URL(answer.url).pathname !== location.pathname && button.matches(".sure .bad") && !form.matches(".bulk"))
      return location.assign(answer.url);
    toast(told);
    for (const box of $$("input[name=job]:checked")) box.checked = false;
    for (const menu of $$("details[open]")) menu.open = false;
    await refresh();
  } catch {
    toast("The server does not answer: nothing is known of this change.");
  }
  button.disabled = false;
});

function theme(button) {
  const next = button.value, order = { system: "dark", dark: "light", light: "system" };
  const root = document.documentElement;
  if (next === "system") delete root.dataset.theme;
  else root.dataset.theme = next;
  document.cookie = `timeball_theme=${next}; path=${base || "/"}; max-age=31536000; samesite=strict`;
  button.value = order[next];
  button.title = `Theme: ${next}; change to ${order[next]}`;
  button.setAttribute("aria-label", button.title);
}

// What only makes sense with a script: the slider over a life, one box for all.
let soon;
function enhance() {
  clearTimeout(soon); // what no database tells of is asked for again
  if ($("[data-soon]")) soon = setTimeout(refresh, 2000);
  for (const box of $$("[data-all]")) box.hidden = false;
  const player = $("[data-player]");
  if (player) {
    player.hidden = false;
    walk($("input", player), false);
  }
}
function walk(slider, show) {
  const n = slider.value;
  $("output", slider.parentNode).textContent = `step ${+n + 1} of ${+slider.max + 1}`;
  for (const each of $$(".ev,.events li[data-n]")) each.classList.toggle("on", show && each.dataset.n === n);
}
document.addEventListener("input", (event) => {
  if (event.target.closest("[data-player]")) walk(event.target, true);
  if (event.target.matches("[data-all]"))
    for (const box of $$("input[name=job]")) box.checked = event.target.checked;
});

// The browser knows better than the server what is local.
const zones = $(".zone select");
if (zones) {
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  let local = $("[data-local]", zones);
  if (!local && name && name !== "UTC") zones.append((local = new Option("local")));
  if (local && !local.selected && name) local.value = name;
  $("button", zones.form).hidden = true;
  zones.addEventListener("change", () => zones.form.submit());
}

document.addEventListener("keydown", (event) => {
  if (event.target.matches("input:not([type=checkbox],[type=range]),select,textarea") || event.metaKey || event.ctrlKey || event.altKey) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const rows = $$("tbody tr a").filter((a) => a.closest("td")?.matches(".main"));
  const i = rows.indexOf(document.activeElement);
  if (event.key === "/") {
    event.preventDefault();
    $("[type=search]")?.focus();
  } else if (event.key === "g") hovered = Date.now();
  else if (Date.now() - hovered < 900) $$(".side kbd").find((k) => k.textContent === `g ${event.key}`)?.parentElement.click();
  else if (event.key === "j" || event.key === "k") rows[event.key === "j" ? i + 1 : Math.max(i - 1, 0)]?.focus();
  else if (event.key === "x") document.activeElement.closest("tr")?.querySelector("input[name=job]")?.click();
  else if (event.key === "r") refresh();
  else if (event.key === "?") toast("/ search · g and a letter: a page · j k rows · x tick · r refresh");
});

$(".side [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
enhance();
follow();
