// Starts every part that this page has, and draws anew when the width changes or the page is printed.

const parts = [];
const find = (id) => document.getElementById(id);
for (const id in charts) if (find(id)) parts.push(charts[id](find(id)));
const eventTable = find("event-table") ? startEvents(find("event-table")) : null;
for (const box of document.querySelectorAll(".plot.tree")) parts.push(startTree(box));

function drawAll() {
  for (const part of parts) part.draw();
}

let lastWidth = document.documentElement.clientWidth, waiting = 0;
window.addEventListener("resize", () => {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(() => {
    if (document.documentElement.clientWidth === lastWidth) return;
    lastWidth = document.documentElement.clientWidth;
    drawAll();
    if (eventTable) eventTable.draw();
  });
});
window.addEventListener("beforeprint", () => {
  printWidth = 700;
  drawAll();
  if (eventTable) {
    eventTable.draw();
    eventTable.drawPrinted();
  }
});
window.addEventListener("afterprint", () => {
  printWidth = 0;
  drawAll();
  if (eventTable) eventTable.draw();
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const part of parts) {
    part.draw();
    if (part.drawKey) part.drawKey();
  }
});

// Short explanations of marks that are not drawn by a script.
for (const kind of ["pointerover", "focusin"]) {
  document.addEventListener(kind, (event) => {
    const marked = event.target.closest("[data-tip]");
    if (!marked) return;
    const box = marked.getBoundingClientRect();
    showTip([marked.dataset.tip], box.left + box.width / 2, box.top);
  });
}
for (const kind of ["pointerout", "focusout"]) {
  document.addEventListener(kind, (event) => {
    if (event.target.closest("[data-tip]")) hideTip();
  });
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") hideTip();
});
drawAll();
