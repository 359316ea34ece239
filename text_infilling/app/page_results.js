// Results: the shown text, the other infills of a blank, and the list of whole texts.

// Returns a result as strings and infills. Its text differs from the template only in spaces beside blanks.
function laidOut(template, way) {
  const pieces = [];
  let place = 0, open = 0;
  for (const part of template) {
    let piece = part;
    if (typeof part === "number") {
      piece = { k: part, text: way.fills[open], words: way.words[open], tokens: way.token_log_probabilities[open++] };
    }
    const text = piece.text ?? piece.replace(/^ +| +$/g, "");
    let start = place;
    while (way.text[start] === " ") start++;
    if (!way.text.startsWith(text, start)) return [way.text];
    pieces.push(way.text.slice(place, start), piece.text === undefined ? text : piece);
    place = start + text.length;
  }
  return [...pieces, way.text.slice(place)].filter(piece => piece !== "");
}

// Returns a text in which the blanks that `isOpen` accepts are open, and its template.
function reopened(isOpen) {
  const template = [];
  let text = "";
  for (const piece of shown) {
    const isText = typeof piece === "string", open = !isText && isOpen(piece);
    const part = open ? "____" : piece.text ?? piece;
    const touches = open ? /[\p{L}\p{N}_]$/u.test(text) :
      /____$/.test(text) && /^(?!n['’]t\b)[\p{L}\p{N}_]/iu.test(part);
    text += (touches ? " " : "") + part;
    if (isText && typeof template.at(-1) === "string") template.push(template.pop() + piece);
    else template.push(open ? piece.k : piece);
  }
  return [text, template];
}

function infillsOf(pieces) {
  return pieces.filter(piece => typeof piece !== "string");
}

function textOf(pieces) {
  return pieces.map(piece => piece.text ?? piece).join("");
}

function shownText() {
  return textOf(shown);
}

function show(pieces) {
  shown = pieces;
  $("filled").replaceChildren(...pieces.map((piece, i) => typeof piece === "string" ? piece :
    fillButton(piece, /^[\p{L}\p{N}]/u.test(pieces[i + 1]?.text ?? pieces[i + 1] ?? ""))));
  $("sentences").replaceChildren(...ways.map((way, i) => {
    const changed = infillsOf(way.pieces).filter(one =>
      infillsOf(shown).find(({ k }) => k === one.k)?.text !== one.text);
    const lost = infillsOf(shown).filter(({ k, picked }) => picked && changed.some(one => one.k === k));
    const text = element("span", { className: "text", dir: "auto" }, ...way.pieces.map(piece =>
      typeof piece === "string" ? piece : element("mark", {}, element("bdi", {}, piece.text || "∅"))));
    const changes = changed.length ? `changes ${blanks(changed)}` +
      (lost.length ? `, also your choice in ${blanks(lost)}` : "") : "";
    const both = element("span", {}, text, element("span", { className: "changes" }, changes));
    const button = element("button", { type: "button" }, both, bar(way.tokens));
    button.setAttribute("aria-pressed", !changed.length);
    button.addEventListener("click", () => {
      show(way.pieces);
      say(`${changes ? changes.replace("changes", "Changed") + ". " : ""}Now: ${shownText()}`);
      $("sentences").children[i].firstChild.focus();
    });
    return element("li", {}, button);
  }));
  const open = infillsOf(shown).filter(({ picked }) => !picked);
  $("refill").hidden = !open.length || open.length === infillsOf(shown).length;
  $("refill").textContent = `Fill ${blanks(open)} again around your choices`;
}

function blanks(infills) {
  const numbers = infills.map(({ k }) => k + 1);
  return numbers.length === 1 ? `blank ${numbers}` : `blanks ${numbers.slice(0, -1).join(", ")} and ${numbers.at(-1)}`;
}

$("refill").addEventListener("click", async () => {
  const picked = new Set(infillsOf(shown).filter(one => one.picked).map(one => one.k));
  if (!busy) await fillTemplate(...reopened(({ k }) => !picked.has(k)));
});
$("again").addEventListener("click", () => {
  $("seed").value = Number($("seed").value) + 1;
  fill();
});

function fillButton(infill, beforeWord) {
  const { k, text, words, tokens } = infill, share = confidence(tokens);
  const button = element("button", { type: "button", className: "fill level" }, element("bdi", {}, text || "∅"));
  const each = tokens.map((one, i) => `${words[i] ?? "end"} ${percent(Math.exp(one))}`).join(", ");
  button.title = `${level(share)}: ${percent(share)} per word` + (words.length ? ` (${each})` : "");
  button.setAttribute("aria-label", `blank ${k + 1}: ${text || "no word"}, ${button.title}` +
    (infill.picked ? ", your choice" : ""));
  button.setAttribute("aria-haspopup", "menu");
  button.setAttribute("aria-expanded", "false");
  Object.assign(button.dataset, { blank: k, level: level(share) });
  button.classList.toggle("picked", Boolean(infill.picked));
  button.classList.toggle("empty", !text);
  button.classList.toggle("spaced", !text && beforeWord);
  button.addEventListener("click", () => openMenu(button, infill));
  return button;
}

// Returns the other infills of a blank, given the rest of the text as shown, and the shown one, the most confident
// first and an empty one last.
async function others(infill) {
  const [text, template] = reopened(({ k }) => k === infill.k), { alternatives } = await filled(text, {});
  const found = alternatives.map(way => {
    const pieces = laidOut(template, way);
    return { pieces, infill: infillsOf(pieces).find(({ k }) => k === infill.k) };
  }).filter(one => one.infill);
  if (!found.some(one => one.infill.text === infill.text)) found.push({ pieces: shown, infill });
  return found.sort((one, other) => !one.infill.text - !other.infill.text ||
    confidence(other.infill.tokens) - confidence(one.infill.tokens));
}

let closeMenu = () => {};

async function openMenu(button, infill) {
  const k = infill.k, again = button.getAttribute("aria-expanded") === "true";
  closeMenu();
  if (again) return;
  const loading = element("p", { className: "quiet" }, "Looking for others …");
  const menu = element("div", { className: "menu" }, loading);
  menu.setAttribute("role", "menu");
  menu.setAttribute("aria-label", `Infills of blank ${k + 1}; the other blanks stay`);
  document.body.append(menu);
  const settle = () => {
    const place = button.getClientRects()[0], most = document.documentElement.clientWidth - menu.offsetWidth - 8;
    menu.style.left = Math.max(8, Math.min(place.left, most)) + scrollX + "px";
    menu.style.top = place.bottom + 4 + scrollY + "px";
  };
  settle();
  button.setAttribute("aria-expanded", "true");
  const outside = event => { if (!menu.contains(event.target) && !button.contains(event.target)) closeMenu(); };
  const escape = event => {
    if (event.key !== "Escape") return;
    closeMenu();
    focusFill(k);
  };
  document.addEventListener("pointerdown", outside);
  document.addEventListener("keydown", escape);
  closeMenu = () => {
    menu.remove();
    button.setAttribute("aria-expanded", "false");
    document.removeEventListener("pointerdown", outside);
    document.removeEventListener("keydown", escape);
    closeMenu = () => {};
  };
  let found;
  try {
    found = await others(infill);
  } catch (error) {
    loading.textContent = error.message;
    say(error.message);
    return;
  }
  if (!menu.isConnected) return;
  menu.replaceChildren(...found.map(one => {
    const { text, tokens } = one.infill;
    const name = element("bdi", { className: text ? "" : "none" }, text || "no word");
    const item = element("button", { type: "button" }, name, bar(tokens));
    item.setAttribute("role", "menuitemradio");
    item.setAttribute("aria-checked", text === infill.text);
    item.addEventListener("click", () => {
      closeMenu();
      show(one.pieces.map(piece => piece === one.infill ? { ...piece, picked: true } : piece));
      focusFill(k);
      say(`Blank ${k + 1} is now ${text || "empty"}; the other blanks stay. Now: ${shownText()}`);
    });
    return item;
  }));
  settle();
  menu.addEventListener("keydown", event => {
    const items = [...menu.children], at = items.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      items.at(to % items.length).focus();
    } else if (event.key === "Tab") {
      event.preventDefault();
      closeMenu();
      focusFill(k);
    }
  });
  menu.querySelector("[aria-checked=true]").focus();
}

function focusFill(k) {
  document.querySelector(`.fill[data-blank="${k}"]`)?.focus();
}

// Links: ?text=... sets the text, names of options set these, and &go=1 fills the text.

function link() {
  const found = new URLSearchParams({ text: $("text").value });
  for (const name of OPTIONS) {
    const input = $(name), usual = input.defaultValue ?? "left";
    if (input.value !== usual) found.set(name, input.value);
  }
  found.set("go", 1);
  return "?" + found;
}

// The clipboard API is missing on pages that other machines serve over http.
function copy(text, message) {
  const area = element("textarea", { value: text, className: "unseen" }), focused = document.activeElement;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  focused.focus();
  $("status").textContent = done ? message : "The browser does not allow copying.";
  say($("status").textContent);
}

$("copy_text").addEventListener("click", () => copy(shownText(), "The text is copied."));
$("copy_link").addEventListener("click", () => copy(new URL(asked, location.href).href, "The link is copied."));

function showExamples([least, most]) {
  const fitting = EXAMPLES.filter(text => {
    const blanks = text.match(BLANK).length;
    return least <= blanks && blanks <= most;
  });
  const texts = fitting.length ? fitting : [Array(least).fill(EXAMPLES[0]).join(" ")];
  $("text").placeholder = texts[0];
  $("examples").replaceChildren(...texts.slice(0, 3).map(text => {
    const button = element("button", { type: "button" }, text);
    button.addEventListener("click", () => {
      setText(text);
      fill();
    });
    return button;
  }));
}

const given = new URLSearchParams(location.search);
for (const name of OPTIONS) if (given.has(name)) $(name).value = given.get(name);
$("more").open = OPTIONS.some(name => given.has(name));
setText(given.get("text") || "");
$("legend").append(...LEVELS.map(([name, , meaning]) => {
  const mark = element("span", { className: "level" }, `${name}: ${meaning}`);
  mark.dataset.level = name;
  return element("span", {}, " ", mark);
}));
markStale();
if (given.get("go")) fill(); else if (!onPhone) $("text").focus();
fetch("health").then(response => response.json()).then(({ model, run, learned }) => {
  $("model").textContent = `Model: ${model}, run: ${run.split("/").pop()}.` +
    (learned ? ` It learned ${learned.summary}.` : "");
  showExamples(learned?.blanks || [1, 2]);
}).catch(() => {});
