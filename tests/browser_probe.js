// Measures the page that it is in, and tells whoever frames it.
addEventListener("load", () => {
  const inside = (inner, outer) =>
    inner.left > outer.left - 1 && inner.right < outer.right + 1 && inner.top > outer.top - 1 && inner.bottom < outer.bottom + 1;
  const overlap = (a, b) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
  const light = (colour) => {
    const parts = colour.match(/[\d.]+/g).slice(0, 3).map((c) => c / 255);
    const [r, g, b] = parts.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const ground = getComputedStyle(document.body).backgroundColor;
  const figures = [...document.querySelectorAll("figure svg")].map((svg) => {
    const box = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim());
    const boxes = texts.map((text) => text.getBoundingClientRect());
    const pairs = boxes.flatMap((a, i) => boxes.slice(i + 1).map((b, j) => [i, i + 1 + j, overlap(a, b)]));
    return {
      seen: svg.getAttribute("aria-label"),
      width: box.width,
      height: box.height,
      texts: texts.length,
      cut: texts.filter((_, i) => !inside(boxes[i], box)).map((text) => text.textContent),
      overlapping: pairs.filter((p) => p[2]).map((p) => [texts[p[0]].textContent, texts[p[1]].textContent]),
      smallest: Math.min(...boxes.map((b) => Math.min(b.height, b.width))),
      contrast: Math.min(...texts.map((text) => contrast(getComputedStyle(text).fill, ground))),
      strokes: Math.min(
        ...[...svg.querySelectorAll("path, line")]
          .map((line) => getComputedStyle(line).stroke)
          .filter((stroke) => stroke.startsWith("rgb"))
          .map((stroke) => contrast(stroke, ground)),
      ),
    };
  });
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  const root = document.documentElement;
  parent.postMessage(
    JSON.stringify({
      name: pageName,
      width: innerWidth,
      heading: document.querySelector("h1").textContent,
      headings: [...document.querySelectorAll("h2")].map((node) => node.textContent),
      verdict: getComputedStyle(document.querySelector(".verdict")).borderLeftColor,
      figures,
      overflow: root.scrollWidth - root.clientWidth,
      twice: ids.filter((id, i) => ids.indexOf(id) !== i),
      scripts: document.querySelectorAll("script").length,
      fetched: performance.getEntriesByType("resource").map((entry) => entry.name),
      rows: document.querySelectorAll("details tbody tr").length,
      unshaded: [...document.querySelectorAll(".scroll")].filter(
        (node) => node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).backgroundImage === "none",
      ).length,
      split: [...document.querySelectorAll("h3 small")].filter((node) => node.getClientRects().length > 1).length,
      isDark: matchMedia("(prefers-color-scheme: dark)").matches,
      textContrast: contrast(getComputedStyle(document.body).color, ground),
      errors: pageErrors,
    }),
    "*",
  );
});
