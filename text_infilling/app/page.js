const $ = id => document.getElementById(id);
// The same blanks as `_BLANK` in tokenizer.py.
const NOT = String.raw`(?=[nN]['’][tT](?![\p{L}\p{N}_]))`;
const BLANK = new RegExp(String.raw`(?<![\p{L}\p{N}_])(?:__m__|_{2,})(?:(?![\p{L}\p{N}_])|${NOT})` +
  String.raw`|(?<![\p{L}\p{N}])\[blank\](?:(?![\p{L}\p{N}])|${NOT})`, "gu");
const LEVELS = [ // name, least confidence, its meaning
  ["sure", .5, "from 50 %"], ["likely", .2, "from 20 %"], ["unsure", .05, "from 5 %"], ["guess", 0, "below 5 %"],
];
const OPTIONS = ["num_results", "min_words", "max_words", "order", "temperature", "seed"];
const EXAMPLES = [
  "The ____ was very good.", "I ____ this place!", "The ____ was good, but the ____ was cold.",
  "I ____ the food and the ____ here.", "The ____ was ____ and we will ____ again.",
];
const onPhone = matchMedia("(pointer: coarse)").matches;
// `shown` is the shown text: strings and infills {k, text, words, tokens, picked}. `ways` are the whole texts to choose
// from, each as such pieces. `asked` is the request, as a link.
let shown = null, ways = [], asked = null, busy = false;

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function say(message) {
  $("said").textContent = message;
}

function counted(number, one) {
  return number === 1 ? `1 ${one}` : `${number} ${one}s`;
}

// Confidence: the geometric mean of the probabilities of the words and the end of an infill.

function confidence(tokens) {
  return tokens.length ? Math.exp(tokens.reduce((sum, one) => sum + one, 0) / tokens.length) : 1;
}

function percent(share) {
  const points = 100 * share;
  return points < .1 ? "below 0.1 %" : points < 9.95 ? points.toFixed(1) + " %" : Math.round(points) + " %";
}

function level(share) {
  return LEVELS.find(([, least]) => share >= least)[0];
}

function bar(tokens) {
  const share = confidence(tokens), made = element("span", { className: "bar" }, element("span"));
  made.firstChild.style.width = Math.round(100 * share) + "%";
  made.title = `${level(share)}: ${percent(share)} per word`;
  made.setAttribute("role", "img");
  made.setAttribute("aria-label", made.title);
  return made;
}

// Typing

function showChips() {
  const text = $("text").value, chips = [];
  let place = 0, number = 0;
  for (const blank of text.matchAll(BLANK)) {
    const chip = element("span", { className: "chip" }, blank[0]);
    chip.dataset.number = ++number;
    chips.push(text.slice(place, blank.index), chip);
    place = blank.index + blank[0].length;
  }
  $("chips").replaceChildren(...chips, text.slice(place));
  $("count").textContent = text.trim() ? counted(number, "blank") + "." : "";
  $("text").style.height = "auto";
  $("text").style.height = $("text").scrollHeight + 2 + "px";
}

function markStale() {
  const stale = asked !== null && link() !== asked;
  $("result").classList.toggle("stale", stale);
  if (stale && $("stale").hidden && !$("result").hidden) say($("stale").textContent);
  $("stale").hidden = !stale;
  $("again").hidden = $("temperature").value === "" && $("seed").value === "";
}

function setText(text) {
  $("text").value = text;
  showChips();
}

$("form").addEventListener("input", () => {
  $("warning").textContent = "";
  showChips();
  markStale();
});
window.addEventListener("resize", showChips);
// A phone has no Shift+Enter, so Enter is a new line there.
$("keys").textContent = onPhone ? "Tap “Fill the blanks” when the text is ready." :
  "Press Enter to fill, Shift+Enter for a new line.";
$("text").enterKeyHint = onPhone ? "enter" : "go";
$("text").addEventListener("keydown", event => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !onPhone) {
    event.preventDefault();
    $("form").requestSubmit();
  }
});
$("blank").addEventListener("click", () => {
  const area = $("text"), before = area.value.slice(0, area.selectionStart);
  const after = area.value.slice(area.selectionEnd);
  const open = /\S$/.test(before) ? " " : "", close = /^[\p{L}\p{N}_]/u.test(after) ? " " : "";
  area.setRangeText(open + "____" + close, area.selectionStart, area.selectionEnd, "end");
  area.focus();
  area.dispatchEvent(new Event("input", { bubbles: true }));
});

// Filling

$("form").addEventListener("submit", event => {
  event.preventDefault();
  fill();
});

function limits() {
  const found = {};
  for (const name of ["min_words", "max_words"]) if ($(name).value !== "") found[name] = Number($(name).value);
  return found;
}

// Returns the result of the server for a text.
async function filled(text, options) {
  const response = await fetch("fill", {
    method: "POST", headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ text, limits: limits(), num_results: Number($("num_results").value), ...options }),
  }).catch(() => { throw new Error("The server does not respond."); });
  const answer = await response.json().catch(() => { throw new Error("The server does not respond."); });
  if (!response.ok) throw new Error(answer.error);
  return answer.results[0];
}

// Fills the blanks of a template: strings, infills that stay, and numbers of open blanks.
async function fillTemplate(text, template) {
  const began = performance.now(), options = { order: $("order").value };
  for (const name of ["temperature", "seed"]) if ($(name).value !== "") options[name] = Number($(name).value);
  closeMenu();
  $("error").textContent = "";
  busy = $("go").disabled = true;
  $("status").textContent = "Filling …";
  try {
    const result = await filled(text, options), seconds = ((performance.now() - began) / 1000).toFixed(1);
    ways = result.fills.length ? result.alternatives.map(way => ({ pieces: laidOut(template, way),
      tokens: way.token_log_probabilities.flat() })) : [];
    // The rest of the warning is about `blank_token`, which the page cannot set.
    $("warning").textContent = (result.warning || "").split("; blank_token")[0];
    const unknown = result.unknown_words || [], notes = [];
    const far = result.far_from_learned;
    if (far) notes.push(`This text is far from what the model learned: ${far}.`);
    if (unknown.length) notes.push(element("span", {}, "Unknown to the model: ",
      ...unknown.flatMap((word, i) => [i ? ", " : "", element("bdi", {}, word)]), "."));
    $("notes").replaceChildren(...notes.map(note => element("li", {}, note)));
    $("result").hidden = !ways.length;
    $("status").textContent = ways.length ? `${counted(ways.length, "way")} to fill it, in ${seconds} s.` : "";
    if (ways.length) {
      show(ways[0].pieces);
      say(`Best text: ${shownText()} ${counted(ways.length, "way")} to fill it.` +
        [...$("notes").children].map(note => " " + note.textContent).join(""));
      intoView();
    }
    return true;
  } catch (error) {
    $("error").textContent = error.message;
    $("status").textContent = "";
    $("result").hidden = true;
    return false;
  } finally {
    busy = $("go").disabled = false;
  }
}

async function fill() {
  const text = $("text").value;
  if (busy) return;
  if (!text.trim()) {
    $("error").textContent = "The text is empty: write a text with ____ where the model should fill something in.";
    $("result").hidden = true;
    $("text").focus();
    return;
  }
  asked = link();
  history.replaceState(null, "", asked);
  if (onPhone) $("text").blur(); // closes the keyboard
  await fillTemplate(text, text.split(BLANK).flatMap((part, k) => k ? [k - 1, part] : [part]));
  markStale();
}

function intoView() {
  const { top } = $("result").getBoundingClientRect();
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (top < 0 || top > innerHeight / 2)
    $("result").scrollIntoView({ block: "start", behavior: calm ? "auto" : "smooth" });
}
