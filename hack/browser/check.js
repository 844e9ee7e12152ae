// Functions for check.go, in every page that it opens.
const croftViolations = [];
document.addEventListener('securitypolicyviolation', (e) => croftViolations.push(`${e.effectiveDirective} refuses ${e.blockedURI}`));

globalThis.croftCheck = {
  // listControls returns the visible links, buttons and fields.
  listControls() {
    const all = document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, [tabindex="0"]');
    return [...all].filter((e) => !e.disabled && e.checkVisibility());
  },

  findLabel(e) {
    const text = e.labels?.[0]?.textContent ?? e.getAttribute('aria-label') ?? e.textContent;
    return text.replace(/\s+/g, ' ').trim();
  },

  // describeFocus returns the control with the focus. The focus is visible if the control has an outline
  // and is on the screen.
  describeFocus() {
    const e = document.activeElement ?? document.body;
    const style = getComputedStyle(e);
    const box = e.getBoundingClientRect();
    const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
    const onScreen = box.left >= 0 && box.top < innerHeight && box.bottom > 0 && box.left < innerWidth;
    return { index: this.listControls().indexOf(e), label: this.findLabel(e), visible: outlined && onScreen };
  },

  // audit returns axe-core's violations, the elements that make the page scroll horizontally, violations of
  // the Content Security Policy, and the canary that hostile texts set if they run as scripts.
  async audit() {
    const options = { resultTypes: ['violations'], rules: { 'target-size': { enabled: true } } };
    const { violations } = await axe.run(document, options);
    const problems = violations.flatMap((v) => v.nodes.map((n) => `axe: ${v.id}: ${v.help}: ${n.target.join(' ')}: ${n.failureSummary}`));
    problems.push(...croftViolations.map((v) => `Content Security Policy: ${v}`));
    if ('croftCanary' in globalThis) problems.push('a text of the page runs as a script');
    const page = document.documentElement;
    if (page.scrollWidth > page.clientWidth) {
      const beyond = [...document.querySelectorAll('main *')].find((e) => e.getBoundingClientRect().right > page.clientWidth);
      problems.push(`the page scrolls horizontally: ${page.scrollWidth} px: ${beyond?.outerHTML.slice(0, 200)}`);
    }
    return problems;
  },
};
