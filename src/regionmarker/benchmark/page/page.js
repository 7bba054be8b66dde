"use strict";
// A number at the start of an entry ("3e-05 (1 of 1)", "93.2 ± 0.4", "2 of 3") sorts as a number.
function key(text) {
  const number = parseFloat(text.replace("\u2212", "-"));
  return Number.isNaN(number) ? null : number;
}
function compare(left, right) {
  const a = key(left), b = key(right);
  if (a !== null && b !== null) return a - b;
  if (a !== null || b !== null) return a !== null ? -1 : 1;
  return left.localeCompare(right);
}
function sort(head) {
  const table = head.closest("table"), column = head.cellIndex, body = table.tBodies[0];
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = Array.from(body.rows);
  rows.sort((a, b) => compare(a.cells[column].textContent, b.cells[column].textContent) * (down ? -1 : 1));
  body.append(...rows);
}
function filter(input) {
  const section = input.closest("section"), words = input.value.toLowerCase().split(/\s+/);
  const rows = Array.from(section.querySelector("tbody").rows);
  let shown = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
    shown += row.hidden ? 0 : 1;
  }
  section.querySelector(".shown").textContent = `${shown} of ${rows.length}`;
}
for (const head of document.querySelectorAll("th")) {
  head.addEventListener("click", () => sort(head));
  head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(head); });
}
for (const input of document.querySelectorAll("input")) input.addEventListener("input", () => filter(input));
// #sort=SECTION.COLUMN and #filter=SECTION.WORDS open the page sorted or filtered: a link can say what it means.
function open() {
  const [verb, rest] = decodeURIComponent(location.hash.slice(1)).split("=");
  const dot = (rest || "").indexOf("."), section = dot > 0 ? document.getElementById(rest.slice(0, dot)) : null;
  if (!section) return;
  if (verb === "sort") sort(section.querySelectorAll("th")[Number(rest.slice(dot + 1))]);
  if (verb === "filter") {
    const input = section.querySelector("input");
    input.value = rest.slice(dot + 1);
    filter(input);
  }
  section.scrollIntoView();
}
open();
