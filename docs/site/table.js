// Tables in a block of the class "sortable": a click on a heading, or Enter, sorts by its column; again, the other way.
// Numbers sort by size, "3 of 4" by its share; what is neither stands in the order of the alphabet; "n/a" comes last.
"use strict";

function valueOf(cell) {
  const text = cell.textContent.trim();
  const found = text.match(/^[-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?/i);
  if (!found) return /^(n\/a|-|–|—|)$/.test(text) ? null : text.toLowerCase();
  const number = Number(found[0].replaceAll(",", ""));
  const whole = text.slice(found[0].length).match(/^ of ([\d,]+)/);
  return whole ? number / Number(whole[1].replaceAll(",", "")) : number;
}

function compare(one, other) {
  if (typeof one === typeof other) return one < other ? -1 : one > other ? 1 : 0;
  return typeof one === "number" ? -1 : 1;
}

function sortBy(table, column, heading) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, value: valueOf(row.cells[column]) }));
  const known = rows.filter(({ value }) => value !== null);
  const numbers = known.every(({ value }) => typeof value === "number");
  const before = heading.getAttribute("aria-sort");
  // Of numbers the large ones come first, but for a rank; of words the first of the alphabet.
  const falling = before ? before === "ascending" : numbers && heading.textContent.trim() !== "rank";
  known.sort((one, other) => compare(one.value, other.value) * (falling ? -1 : 1));
  body.append(...[...known, ...rows.filter(({ value }) => value === null)].map(({ row }) => row));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
}

function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "Sort by this column";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => sortBy(table, column, heading));
  });
}

document.querySelectorAll(".sortable table").forEach((table) => table.tHead && makeSortable(table));
