// What the page does in the browser.
window.mars = {
  inputs: null, // what they hold, as JSON
  tickets: 0, // given so far
  asked: new Map(), // inputs that were sent, by ticket; an answer has the ticket of its inputs

  // Return a new ticket for inputs, before them.
  ask(values) {
    mars.asked.set(++mars.tickets, JSON.stringify(values));
    return [mars.tickets, ...values];
  },

  // Note the inputs of the answer that is there on arrival, whose ticket is 0.
  arrive(values) {
    mars.asked.set(0, JSON.stringify(values));
  },

  // Bring the outputs into sight where they stand below the inputs.
  look() {
    if (!matchMedia("(max-width: 640px)").matches) return;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    document.querySelector("#mars-outputs").scrollIntoView({ behavior: calm ? "instant" : "smooth" });
  },

  // Mark the example that the inputs hold and return its hint; `examples` are the hints by inputs without the preset.
  change(examples, values) {
    mars.inputs = JSON.stringify(values);
    const example = JSON.stringify(values.slice(0, -1));
    document.querySelectorAll("#mars-examples button").forEach((button, index) => {
      button.setAttribute("aria-pressed", Object.keys(examples)[index] === example);
    });
    mars.compare();
    return [examples[example] ?? ""];
  },

  // Mark an answer to other inputs than the present ones as outdated.
  compare() {
    const asked = mars.asked.get(Number(document.querySelector("#mars-ranking [data-ticket]")?.dataset.ticket));
    document.body.classList.toggle("mars-outdated", Boolean(asked && mars.inputs) && asked !== mars.inputs);
  },
};
new MutationObserver(mars.compare).observe(document.documentElement, { childList: true, subtree: true });
