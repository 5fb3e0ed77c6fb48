// The console works without this file. With it, values update live, dialogs open in place, forms are sent in the
// background, and keys work. This file never converts data to HTML: it sets texts as texts. If it loads a page to show a part
// of it, the server has escaped the page, and the Content-Security-Policy blocks its scripts.
"use strict";
(() => {
  const $ = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const parse = (html) => new DOMParser().parseFromString(html, "text/html");
  const load = (url) => fetch(url, { headers: { Accept: "text/html" } });
  const keep = (key, value) => { try { value === undefined || localStorage.setItem("beanpole-" + key, value); return localStorage.getItem("beanpole-" + key); } catch { return null; } };

  // Live values. The stream contains texts and lines by the ids of their elements.
  const button = $("#live"), stream = document.body.dataset.live;
  const view = stream || location.href; // of the shown page, whose default tab can change
  let shape = $("#foot")?.dataset.shape, source = null, poll = 0, on = keep("live") !== "off", loading = false, stale = false, over = false, down = false;

  const show = (state) => { for (const s of ["on", "slow", "lost"]) button.toggleAttribute("data-" + s, s === state); button.textContent = { on: "live", slow: "every 5 s", lost: "reconnecting", off: "paused" }[state]; button.setAttribute("aria-pressed", String(state !== "off")); };

  // After five seconds without an answer, the page shows that its values are old.
  let heard = Date.now();
  const hear = () => { heard = Date.now(); $("#away").hidden = true; };
  const listen = (asks) => {
    if (!asks || document.hidden || Date.now() - heard < 5000 || !$("#away").hidden) return;
    $("#away").textContent = "No answer since " + new Date(heard).toISOString().slice(11, 19) + " UTC: this page shows the values of that time.";
    $("#away").hidden = false;
  };

  const apply = (event) => {
    hear();
    const values = JSON.parse(event.data);
    for (const [id, v] of Object.entries(values.v ?? {})) {
      const e = document.getElementById(id);
      if (!e) continue;
      if (e.textContent !== v.t) e.textContent = v.t;
      if (e.className !== v.c) e.className = v.c;
    }
    for (const [id, d] of Object.entries(values.d ?? {})) document.getElementById(id)?.setAttribute("d", d);
    if (values.s && values.s !== shape) reload();
  };

  // If rows or their order change, the page is loaded again, except under the pointer and while rows are selected.
  const busy = () => over || $("dialog[open]") || $("[data-rows] :checked") || $("main details[open]") || $("#main").contains(document.activeElement) && document.activeElement !== $("#main");
  const reload = async () => {
    if (down) { stale = true; return; }
    if (busy()) { stale = true; pill(); return; }
    if (loading) { stale = true; return; }
    loading = true; stale = false;
    try {
      const answer = await load(view);
      if (!answer.ok && answer.status !== 404) throw new Error(answer.status);
      hear();
      const page = parse(await answer.text());
      if (down) stale = true;
      else if (busy()) { stale = true; pill(); }
      else { replace(page); $("#moved")?.remove(); }
    } catch { stale = true; listen(poll); }
    setTimeout(() => { loading = false; if (stale) reload(); }, 3000);
  };
  // A click would be lost if its target were replaced between press and release.
  addEventListener("pointerdown", () => { down = true; }, true);
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => { down = false; if (stale) setTimeout(reload); }, true);
  const replace = (page) => {
    const main = $("#main", page), foot = $("#foot", page);
    if (!main || !foot) return;
    shape = foot.dataset.shape;
    const note = $("#main > .note"); // the page is loaded without its note
    $("#main").replaceChildren(...main.childNodes);
    if (note && !$("#main > .note")) $("#main").prepend(note);
    $("#foot").replaceChildren(...foot.childNodes);
    prepare();
  };
  const pill = () => {
    if ($("#moved")) return;
    const b = document.createElement("button");
    b.id = "moved"; b.className = "moved"; b.textContent = "Rows have changed: show them";
    b.onclick = () => { over = false; all("[data-rows] :checked").forEach((c) => (c.checked = false)); all("main details[open]").forEach((d) => (d.open = false)); document.activeElement.blur(); loading = false; reload(); };
    document.body.append(b);
  };

  const stop = () => { source?.close(); source = null; clearInterval(poll); poll = 0; };
  const begin = () => {
    stop();
    if (!stream) return;
    if (!on) return show("off");
    if (document.hidden) return;
    hear();
    source = new EventSource(stream);
    source.onopen = () => show("on");
    source.onmessage = apply;
    source.onerror = () => {
      if (source?.readyState !== EventSource.CLOSED) return show("lost");
      show("slow"); // too many streams are open, or the page has none
      stop();
      poll = setInterval(() => reload(), 5000);
    };
  };
  if (stream) {
    button.hidden = false;
    button.onclick = () => { on = !on; keep("live", on ? "on" : "off"); begin(); };
    document.addEventListener("visibilitychange", begin);
    setInterval(() => listen(source), 1000);
    addEventListener("pagehide", stop);
    addEventListener("pageshow", (e) => e.persisted && begin());
    begin();
  }

  // Dialogs show the confirmation page of an action. If the action fails, they show the reason and keep the selection and the text.
  const dialog = $("#dialog");
  const open = (part) => {
    dialog.replaceChildren(part);
    $("[data-cancel]", dialog).onclick = (e) => { e.preventDefault(); dialog.close(); };
    if (!dialog.open) dialog.showModal();
    ($("input[required]:not([type=hidden])", dialog) ?? $("[data-cancel]", dialog)).focus();
  };
  const complain = (text, form) => {
    const p = document.createElement("p");
    p.className = "note bad"; p.textContent = text; p.setAttribute("role", "alert");
    if (!form) {
      const box = document.createElement("div"), close = document.createElement("button");
      close.dataset.cancel = ""; close.textContent = "Close"; box.append(p, close);
      return open(box);
    }
    $(".note.bad", form)?.remove();
    form.prepend(p);
    p.scrollIntoView({ block: "nearest" });
  };
  // reasonOf returns the text of a page that shows a problem.
  const reasonOf = (page) => ($("#main .note.bad", page) ?? $("#main .empty p", page) ?? $("#main h1", page))?.textContent || "The server refused this.";
  const isLogin = (answer) => new URL(answer.url).pathname === "/console/login";
  const ask = async (url) => {
    let answer;
    try { answer = await load(url); } catch { return complain("The server does not answer. Nothing was changed. Try again later."); }
    if (isLogin(answer)) return void (location.href = url);
    const page = parse(await answer.text()), part = $("[data-part=confirm]", page);
    if (!part) return complain(reasonOf(page));
    open(part);
    $("select[name=state]", dialog)?.addEventListener("change", (e) => { const u = new URL(url, location); u.searchParams.set("state", e.target.value); ask(u); });
  };
  let sending = false;
  const send = async (form, button) => {
    if (sending) return;
    sending = true;
    try {
      const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form, button)) });
      if (answer.redirected && !isLogin(answer)) return void (location.href = answer.url);
      const page = parse(await answer.text()), part = $("[data-part=confirm]", page);
      if (isLogin(answer)) complain("You are logged out. Log in from another tab, then try again.", form);
      else if (part && dialog.open) open(part);
      else if ($("#main form[method=post]", page)) { $("#main").replaceChildren(...$("#main", page).childNodes); prepare(); scrollTo(0, 0); }
      else complain(reasonOf(page), form);
    } catch {
      complain("The server does not answer, so the result is unknown. Check it before you try again.", form);
    } finally { sending = false; }
  };
  document.addEventListener("click", (e) => { const a = e.target.closest("a[data-dialog]"); if (a && !e.ctrlKey && !e.metaKey && !e.shiftKey) { e.preventDefault(); ask(a.href); } });
  document.addEventListener("submit", (e) => {
    const form = e.target;
    if (form.matches("#main :not(.login) > form[method=post], #main > form[method=post], #dialog form")) { e.preventDefault(); return void send(form, e.submitter); }
    if (!form.matches("[data-confirm]")) return;
    e.preventDefault();
    if (!$("[data-rows] :checked:not([data-all])", form)) return;
    ask(form.action + "?" + new URLSearchParams(new FormData(form, e.submitter)));
  });
  document.addEventListener("change", (e) => {
    if (e.target.closest("#theme, [data-submit]") || e.target.matches("[data-submit]")) e.target.form.requestSubmit();
    if (e.target.matches("[data-all]")) all("tbody input[type=checkbox]", e.target.closest("table")).forEach((c) => (c.checked = e.target.checked));
    if (e.target.matches("[data-rows] input")) count();
    if (e.target.id === "keysoff") keep("keys", e.target.checked ? "off" : "on");
  });
  const count = () => all("[data-count]").forEach((text) => { const n = all("tbody :checked", text.closest("form")).length; text.textContent = n ? n + " selected" : "Selected"; });

  // The palette shows the choices of the find page. Enter opens the first choice.
  const palette = $("#palette"), field = $("input", palette);
  let asked = 0;
  const choices = async () => {
    const mine = ++asked, html = await load(document.body.dataset.base + "find?list=1&q=" + encodeURIComponent(field.value)).then((answer) => answer.text()).catch(() => "");
    const list = $("[data-part=choices]", parse(html));
    if (list && mine === asked) $("ul", palette).replaceChildren(...list.childNodes);
  };
  field.oninput = choices;
  const find = () => { palette.showModal(); field.select(); choices(); };
  if ($("#find")) $("#find").onclick = (e) => { e.preventDefault(); find(); };
  palette.onclick = (e) => { if (e.target === palette) palette.close(); }; // to return false would cancel the click
  palette.onkeydown = (e) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[e.key], list = [field, ...all("a", palette)];
    if (by) { asked++; e.preventDefault(); list[(list.indexOf(document.activeElement) + by + list.length) % list.length].focus(); }
  };

  // A search field offers names, and a schedule shows its next runs.
  document.addEventListener("input", async (e) => {
    const t = e.target, form = t.closest("[data-next-runs]");
    if (!form && !t.matches("[data-names]") || e.inputType === "insertReplacementText") return;
    const url = form ? "schedule/next?" + new URLSearchParams(["cron", "every", "timezone"].map((n) => [n, form[n].value])) : "search/names?q=" + encodeURIComponent(t.value);
    const mine = ++asked, html = await load(document.body.dataset.base + url).then((answer) => answer.text()).catch(() => "");
    const list = $("[data-part]", parse(html));
    if (list && mine === asked) (form ? $("[data-part]", form) : t.list).replaceChildren(...list.childNodes);
  });

  // A click elsewhere or Escape closes a menu.
  document.addEventListener("click", (e) => all("details.menu[open]").forEach((m) => m.contains(e.target) || (m.open = false)));
  document.addEventListener("keydown", (e) => { const m = e.key === "Escape" && $("details.menu[open]"); if (m) { m.open = false; $("summary", m).focus(); } });

  // A search continues until the page is full, and keeps its URL.
  const full = 50;
  const further = async (link) => {
    const body = $("[data-found]"), title = "Continue";
    let stopped = false;
    link.textContent = "Stop";
    link.onclick = (e) => { e.preventDefault(); stopped = true; };
    for (let next = link.href; !stopped && (body?.children.length ?? 0) < full; ) {
      const html = await load(next).then((answer) => answer.text()).catch(() => null);
      if (html === null) break; // the server is away
      const part = parse(html);
      const found = all("[data-found] tr", part), more = $("a[data-continue]", part), told = $("[data-progress] span", part);
      if (!told) return location.reload(); // logged out, or refused
      if (found.length && !body) { $("#main").replaceChildren(...$("#main", part).childNodes); return prepare(); }
      body?.append(...found);
      $("[data-progress] span").textContent = told.textContent.replace(/^.*?(?= in )/, (text) => (body ? body.children.length + " found" : text));
      if (!more) { link.replaceWith("Search complete."); return; }
      link.href = next = more.href;
    }
    link.textContent = title;
    link.onclick = (body?.children.length ?? 0) < full ? (e) => { e.preventDefault(); further(link); } : null;
  };

  // Keys.
  let row = -1, prefix = "";
  const rows = () => all("[data-rows] tbody tr");
  const move = (by) => { const list = rows(); list[row]?.classList.remove("here"); row = Math.max(0, Math.min(list.length - 1, row + by)); list[row]?.classList.add("here"); list[row]?.scrollIntoView({ block: "nearest" }); $("td.name a", list[row] ?? document.createElement("p"))?.focus({ preventScroll: true }); };
  // A key acts on the selected rows, or else on the current row, or else on the subject of the page.
  const act = (...names) => {
    const form = $("main form[data-confirm]"), button = form && names.map((n) => $("button[value=" + n + "]", form)).find(Boolean);
    const here = $("tbody .here input[type=checkbox]");
    if (button && here && !$("tbody :checked", form)) { here.checked = true; count(); }
    if (button && $("tbody :checked", form)) form.requestSubmit(button);
    else names.map((n) => $('main a[data-dialog][href*="do=' + n + '&"]')).find(Boolean)?.click();
  };
  const tell = async () => {
    const part = $("[data-part=keys]", parse(await load(document.body.dataset.base + "keys").then((answer) => answer.text()).catch(() => "")));
    if (!part) return;
    $("#keys").replaceChildren(part);
    $("#keysoff").checked = keep("keys") === "off";
    $("#keys").showModal();
  };
  const go = (where) => { location.href = document.body.dataset.base + where; };
  const click = (selector) => $(selector)?.click();
  const keys = {
    "/": () => find(), f: () => $("main [data-search]")?.focus(), j: () => move(1), k: () => move(-1), "[": () => click("a[data-first]"), "]": () => click("a[data-next]"), " ": () => button.click(), "?": () => tell(),
    x: () => { const c = $("input[type=checkbox]", rows()[row] ?? document.createElement("p")); if (c) { c.checked = !c.checked; count(); } }, Enter: () => $("td.name a", rows()[row] ?? document.createElement("p"))?.click(),
    "g o": () => go(""), "g t": () => go("tubes"), "g x": () => go("failures"), "g w": () => go("working"), "g c": () => go("connections"), "g a": () => go("activity"), "g s": () => go("server"), K: () => act("kick-job", "kick-tube"), B: () => act("bury-job"), R: () => act("redrive-job", "redrive-jobs"), D: () => act("delete-job", "clear-tube"), m: () => act("move-job"), p: () => act("pause-tube", "resume-tube"),
    u: () => all(".crumbs a").pop()?.click(), s: () => { const menu = $(".sites"); if (menu) { menu.open = true; $("a", menu).focus(); } }, "g f": () => go("search"),
  };
  const isSeen = (e) => e.getClientRects().length > 0; // a field of a closed dialog can keep the focus
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || keep("keys") === "off" || $("dialog[open]") || isSeen(e.target) && e.target.matches("input:not([type=checkbox]), select, textarea, [contenteditable]")) return;
    if ((e.key === " " || e.key === "Enter") && e.target.matches("a, button, summary, input, [tabindex]")) return;
    const key = prefix + e.key;
    prefix = e.key === "g" && !prefix ? "g " : "";
    if (keys[key]) { e.preventDefault(); keys[key](); }
  });

  const prepare = () => {
    row = -1;
    const link = $("a[data-continue]");
    if (link && all("[data-found] tr").length < full) further(link);
    all("[data-all]").forEach((c) => (c.hidden = false));
    all("[data-rows]").forEach((t) => { t.onpointerenter = () => (over = true); t.onpointerleave = () => { over = false; if (stale) reload(); }; });
    over = !!$("[data-rows]:hover");
    if (new URLSearchParams(location.search).has("note")) { const u = new URL(location); u.searchParams.delete("note"); history.replaceState(null, "", u); }
  };
  const help = $("#help");
  help.hidden = false;
  help.onclick = () => tell();
  prepare();
})();
