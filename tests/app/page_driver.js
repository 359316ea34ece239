// Uses the page in frames, as a user does, and puts what it saw into `data-seen` of the body.
if (frameElement) {
  window.addEventListener("error", event => top.errors.push(event.message));
} else {
  window.errors = [];
  drive();
}

async function until(condition) {
  for (let i = 0; i < 400 && !condition(); i++) await new Promise(done => setTimeout(done, 10));
  if (!condition()) errors.push(`not reached: ${condition}`);
}

async function opened(text, options = "&go=1", width = 1000, isPhone = false) {
  const frame = document.createElement("iframe");
  frame.style = `width: ${width}px; height: 600px; border: 0`;
  frame.name = isPhone ? "phone" : "";
  frame.src = `/?text=${encodeURIComponent(text)}${options}`;
  document.body.replaceChildren(frame);
  await new Promise(done => { frame.onload = done; });
  const page = frame.contentDocument, $ = id => page.getElementById(id);
  const all = selector => [...page.querySelectorAll(selector)];
  const texts = selector => all(selector).map(each => each.textContent);
  const idle = () => until(() => $("model").textContent && !$("go").disabled &&
    ["said", "error", "status", "warning"].some(id => $(id).textContent));
  if (options.includes("go")) await idle();
  const menu = async k => {
    all(".fill")[k].click();
    await until(() => all("[role=menuitemradio]").length);
    return texts("[role=menuitemradio] bdi");
  };
  const pick = n => all("[role=menuitemradio]")[n].click();
  const state = () => ({
    text: $("filled").textContent, said: $("said").textContent, titles: all(".fill").map(each => each.title),
    picked: texts(".picked"), refill: $("refill").hidden ? null : $("refill").textContent, changes: texts(".changes"),
  });
  frame.contentDocument.execCommand = () => {
    frame.copied = page.activeElement.value;
    return true;
  };
  return { frame, page, $, all, texts, idle, menu, pick, state };
}

async function drive() {
  const seen = { errors, warnings: {} };
  try {
    let { page, frame, $, all, texts, idle, menu, pick, state } = await opened("<b>cats</b> like ____ , and ____!");
    seen.html = { chips: all(".chip").length, fills: texts(".fill"), text: $("filled").textContent,
      entries: all("#sentences [aria-pressed]").length };

    ({ page, frame, $, all, texts, idle, menu, pick, state } = await opened("The ____ was\n  ____ here."));
    const list = all("#sentences .text").map(each => [each.textContent, [...each.querySelectorAll("mark")].map(mark =>
      mark.textContent), frame.contentWindow.getComputedStyle(each).whiteSpace]);
    seen.choice = { start: state(), list, menu: await menu(1), checked: texts("[aria-checked=true] bdi"),
      focused: page.activeElement.querySelector("bdi").textContent };
    pick(1);
    seen.choice.first = state();
    pick((await menu(0)).indexOf("tea"));
    seen.choice.second = { ...state(), picked: texts(".picked").slice(1) };
    all("#sentences button")[1].click();
    seen.choice.whole = state();

    ({ page, frame, $, all, texts, idle, menu, pick, state } = await opened("the ____ was cold ."));
    const range = page.createRange(), after = $("filled").lastChild;
    range.setStart(after, 0);
    range.setEnd(after, 3);
    seen.empty = { fills: texts(".fill"), label: all(".fill")[0].getAttribute("aria-label"),
      legend: texts("#legend .level"), bars: all("#sentences .bar").map(each => each.title), keys: $("keys").textContent,
      gap: range.getBoundingClientRect().left - all(".fill")[0].getBoundingClientRect().right,
      again_is_offered: !$("again").hidden };
    $("copy_text").click();
    seen.empty.copied = frame.copied;

    ({ page, frame, $, all, texts, idle } = await opened("I like ____ .",
      "&num_results=3&min_words=1&max_words=2&order=confident&temperature=0.5&seed=4&go=1"));
    seen.links = { first: frame.contentWindow.location.search, stale: [!$("stale").hidden],
      again_is_offered: !$("again").hidden };
    const change = value => {
      $("max_words").value = value;
      $("max_words").dispatchEvent(new Event("input", { bubbles: true }));
      seen.links.stale.push(!$("stale").hidden);
    };
    change(3);
    change(2);
    $("said").textContent = "";
    $("again").click();
    await until(() => $("said").textContent);
    seen.links.again = frame.contentWindow.location.search;
    $("copy_link").click();
    Object.assign(seen.links, { copied: frame.copied, said: $("said").textContent });

    ({ $, all, texts, idle } = await opened("", ""));
    await until(() => all("#examples button").length);
    seen.learned = { model: $("model").textContent, examples: texts("#examples button"),
      placeholder: $("text").placeholder };
    $("go").click();
    seen.nothing = $("error").textContent;
    all("#examples button")[0].click();
    await until(() => $("said").textContent);
    Object.assign(seen.learned, { after_click: $("filled").textContent, notes: texts("#notes li"),
      said: $("said").textContent });

    ({ texts } = await opened("the ____ ramen ____"));
    seen.far = texts("#notes li");

    ({ frame, $, all, texts } = await opened("שלום ____ עולם"));
    const directions = [$("text"), $("chips"), $("filled"), all("#sentences .text")[0]].map(each =>
      frame.contentWindow.getComputedStyle(each).direction);
    seen.hebrew = { directions, isolated: texts(".fill > bdi"), text: $("filled").textContent };

    for (const width of [375, 320]) {
      const long = `____ is ${"x".repeat(95)} ${"y__y".repeat(25)}`;
      ({ page, frame, $, all, texts, menu } = await opened(long, "&go=1", width, true));
      await until(() => $("result").getBoundingClientRect().top < 300);
      seen[`phone${width}`] = { in_view: $("result").getBoundingClientRect().top < 300, keys: $("keys").textContent,
        lengths: [$("model"), $("warning"), $("filled")].map(each => each.textContent.length) };
      await menu(0);
      seen[`phone${width}`].widths = [frame.contentWindow.innerWidth, page.documentElement.scrollWidth];
    }

    const marks = "____ is ____n't, [blank]n’t, __ and __m__! un____able __x _ [MASK] [blank]s ____nt";
    ({ $, texts } = await opened(marks, ""));
    seen.blanks = { chips: texts(".chip"), count: $("count").textContent };

    for (const text of ["the [MASK] was cold", "the soup was cold", "the ____ was un____able", "the ____ was cold"]) {
      ({ $, all } = await opened(text));
      seen.warnings[text] = [$("warning").textContent, all(".fill").length, $("status").textContent];
    }
  } catch (error) {
    errors.push(String(error.stack));
  }
  document.body.dataset.seen = JSON.stringify(seen);
}
