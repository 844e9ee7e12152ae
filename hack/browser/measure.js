// croftMeasure tells how long a page takes until it shows a text. The text is looked for before each picture,
// and the time is read after the picture in which it was found.
window.croftMeasure ??= {
  await(text, gone) {
    this.found = null;
    const look = () => {
      if (this.current !== look) {
        return; // a later text is awaited
      }
      if (document.body && document.body.textContent.includes(text) !== gone) {
        requestAnimationFrame(() => {
          this.found = { seconds: performance.now() / 1000, at: performance.timeOrigin + performance.now() };
        });
        return;
      }
      requestAnimationFrame(look);
    };
    this.current = look;
    requestAnimationFrame(look);
  },

  async read(limit) {
    const end = performance.now() + 1000 * limit;
    while (!this.found && performance.now() < end) {
      await new Promise((done) => setTimeout(done, 10));
    }
    const responses = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    const sum = (list) => list.reduce((total, r) => total + r.encodedBodySize, 0);
    return {
      ...(this.found ?? { seconds: -1, at: -1 }),
      bytes: sum(responses),
      scripts: sum(responses.filter((r) => r.initiatorType === "script" || /\.m?js(\?|$)/.test(r.name))),
      requests: responses.length,
      text: document.body ? document.body.innerText.slice(0, 500) : "",
    };
  },
};
