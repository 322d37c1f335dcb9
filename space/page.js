// The page's code in the browser. A ticket is a number of inputs that were sent. Their answer has the same ticket.
window.mars = {
  inputs: null, // the present inputs as JSON
  tickets: 0, // the last ticket
  asked: new Map(), // inputs that were sent, by ticket

  // Return a new ticket, followed by its inputs.
  ask(values) {
    mars.asked.set(++mars.tickets, JSON.stringify(values));
    return [mars.tickets, ...values];
  },

  // Note the inputs of the answer on arrival, whose ticket is 0.
  arrive(values) {
    mars.asked.set(0, JSON.stringify(values));
  },

  // Scroll to the outputs on narrow screens, where they are below the inputs.
  look() {
    if (!matchMedia("(max-width: 640px)").matches) return;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    document.querySelector("#mars-outputs").scrollIntoView({ behavior: calm ? "instant" : "smooth" });
  },

  // Mark the example that matches the inputs and return its hint. `examples` has hints by inputs without the preset.
  change(examples, values) {
    mars.inputs = JSON.stringify(values);
    const example = JSON.stringify(values.slice(0, -1));
    document.querySelectorAll("#mars-examples button").forEach((button, index) => {
      button.setAttribute("aria-pressed", Object.keys(examples)[index] === example);
    });
    mars.compare();
    return [examples[example] ?? ""];
  },

  // Mark an answer as outdated if its inputs are not the present ones.
  compare() {
    const asked = mars.asked.get(Number(document.querySelector("#mars-ranking [data-ticket]")?.dataset.ticket));
    document.body.classList.toggle("mars-outdated", Boolean(asked && mars.inputs) && asked !== mars.inputs);
  },
};
new MutationObserver(mars.compare).observe(document.documentElement, { childList: true, subtree: true });
