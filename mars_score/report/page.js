// Sorts tables, folds the contents on narrow screens, unfolds all for print.
"use strict";
const narrow = matchMedia("(max-width: 64rem)");
const contents = document.querySelector(".contents details");
const fold = () => { contents.open = !narrow.matches; };
narrow.addEventListener("change", fold);
fold();
addEventListener("beforeprint", () => {
  for (const one of document.querySelectorAll("main details")) one.open = true;
});

const number = (text) => {
  const plain = text.replace("\u2212", "-").replace(/^[<>] ?/, "");
  const found = /^[+-]?(\d[\d,]*\.?\d*|\.\d+)(e[+-]?\d+)?/i.exec(plain);
  return found ? parseFloat(found[0].replaceAll(",", "")) : NaN;
};
const compare = (one, other, sign) => {
  const [x, y] = [number(one), number(other)];
  if (isNaN(x) || isNaN(y)) return isNaN(x) && isNaN(y) ? sign * one.localeCompare(other) : isNaN(x) - isNaN(y);
  return sign * (x - y);
};
const sort = (heading, column) => {
  const body = heading.closest("table").tBodies[0];
  const first = column === 0 ? "ascending" : "descending";
  const second = column === 0 ? "descending" : "ascending";
  const order = heading.getAttribute("aria-sort") === first ? second : first;
  for (const one of heading.parentNode.children) one.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", order);
  const text = (row) => row.cells[column].textContent.trim();
  const rows = [...body.rows].sort((a, b) => compare(text(a), text(b), order === "ascending" ? 1 : -1));
  body.append(...rows);
};
for (const row of document.querySelectorAll(".box thead tr")) {
  if (row.closest("table").tBodies[0].rows.length < 2) continue;
  [...row.children].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sort(heading, column));
    heading.append(button);
  });
}
