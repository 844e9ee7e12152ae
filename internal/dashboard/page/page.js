// Updates the page, and shows times in the viewer's time zone. Without this script, pages show UTC.
const main = document.getElementById('main');
const panel = document.getElementById('live');
const minute = 60_000;

// Swedish dates have the format of the page without a script.
const time = new Intl.DateTimeFormat('sv', {
  year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short',
});

// Ages have kubectl's format: each limit in seconds has one or two units.
const units = { s: 1, m: 60, h: 3600, d: 86400, y: 31536000 };
const ages = [[120, 's'], [600, 'm', 's'], [10800, 'm'], [28800, 'h', 'm'], [172800, 'h'], [691200, 'd', 'h'], [63072000, 'd'], [252288000, 'y', 'd'], [Infinity, 'y']];

function formatAge(seconds) {
  const [, unit, second] = ages.find(([limit]) => seconds < limit);
  const rest = second ? Math.floor((seconds % units[unit]) / units[second]) : 0;
  return Math.floor(seconds / units[unit]) + unit + (rest ? rest + second : '');
}

function showTimes(root) {
  for (const e of root.querySelectorAll('time')) {
    const at = new Date(e.dateTime);
    const isAge = e.className === 'age';
    e.title ||= isAge ? time.format(at) : e.textContent;
    const text = isAge ? formatAge(Math.max(0, (Date.now() - at) / 1000)) : time.format(at);
    if (e.textContent !== text) e.textContent = text;
  }
}

showTimes(main);
setInterval(() => showTimes(main), 10_000);

// findKey returns the text that identifies a row, a section or a form among its siblings.
function findKey(node) {
  if (!node.matches?.('tr, section, form')) return '';
  return node.getAttribute('action') ?? node.querySelector('td, h2')?.textContent;
}

// follow shows the lines of a log as they are written, in the place of its last lines. Without this script, the page
// has the last lines when it is opened.
const mostLines = 2000;
let log; // the open stream, with its element

function follow(stop) {
  const element = stop ? null : main.querySelector('pre[data-stream]');
  if (log && (log.element !== element || log.url !== element.dataset.stream)) {
    log.source.close();
    log.element.classList.remove('follows');
    log = null;
  }
  if (!element || log) return;
  const code = element.firstElementChild;
  const state = element.previousElementSibling;
  const source = new EventSource(element.dataset.stream);
  let isFirst = true; // the stream begins with the last lines, which the page has
  let count = 0;
  log = { element, source, url: element.dataset.stream };

  function add(text, lines) {
    const atEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - 8;
    if (isFirst) code.textContent = '';
    isFirst = false;
    const part = document.createTextNode(text + '\n');
    part.lines = lines;
    code.append(part);
    for (count += lines; count > mostLines && code.childNodes.length > 1; code.firstChild.remove()) count -= code.firstChild.lines;
    element.hidden = false;
    if (atEnd) element.scrollTop = element.scrollHeight;
  }

  source.onopen = () => {
    state.textContent = state.dataset.follows;
    element.classList.add('follows');
    if (isFirst) element.scrollTop = element.scrollHeight;
  };
  source.onmessage = (event) => add(event.data, event.data.split('\n').length);
  source.addEventListener('skipped', (event) => add(`⋯ ${event.data} ${state.dataset.skipped}`, 1));
  source.addEventListener('end', () => {
    source.close();
    log = null;
    state.textContent = state.dataset.ends;
  });
}

// update changes a node into another one. Elements that remain keep their focus, typed values and scroll
// position; a <details> stays open or closed.
function update(old, fresh) {
  if (old.isEqualNode(fresh) || old === log?.element && old.dataset.stream === fresh.dataset.stream) return;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.data = fresh.data;
    return;
  }
  const names = new Set([...old.getAttributeNames(), ...fresh.getAttributeNames()]);
  names.delete('open');
  for (const name of names) {
    if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    else if (old.getAttribute(name) !== fresh.getAttribute(name)) old.setAttribute(name, fresh.getAttribute(name));
  }
  const left = [...old.childNodes];
  const pairs = [...fresh.childNodes].map((node) => {
    const i = left.findIndex((o) => o.nodeName === node.nodeName && findKey(o) === findKey(node));
    return [node, i < 0 ? null : left.splice(i, 1)[0]];
  });
  for (const node of left) node.remove();
  let place = old.firstChild;
  for (const [node, match] of pairs) {
    if (match) update(match, node);
    if (match && match === place) place = place.nextSibling;
    else old.insertBefore(match ?? node, place);
  }
}

function show(fresh) {
  showTimes(fresh);
  const focused = document.activeElement;
  update(main, fresh);
  if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  follow(false);
}

// startUpdates loads the page again when the server reports another version of it.
function startUpdates() {
  const [button, status] = panel.children;
  const page = new URL(location.href);
  page.hash = '';
  const stream = new URL(page);
  stream.searchParams.set('live', '1');
  const pause = button.textContent;
  let paused = false;
  let source, timer, request, reported;

  function load() {
    if (request) return;
    reported = '';
    request = new XMLHttpRequest(); // its parser is no sink of Trusted Types
    request.open('GET', page);
    request.responseType = 'document';
    request.onloadend = () => {
      const { status: code, response, responseURL } = request;
      request = null;
      const fresh = response?.getElementById('main');
      if (code === 200 && responseURL === page.href && fresh?.dataset.version) show(fresh);
      else if (code > 0 && code < 500) end();
      else setTimeout(load, minute / 6);
      if (reported) compare(reported);
    };
    request.send();
  }

  function compare(version) {
    reported = version;
    if (version !== main.dataset.version) load();
  }

  function connect() {
    clearTimeout(timer);
    source?.close();
    follow(paused || document.hidden);
    if (paused || document.hidden) return;
    source = new EventSource(stream);
    source.onmessage = (event) => compare(event.data);
    source.onerror = () => {
      if (source.readyState !== EventSource.CLOSED) return; // the browser connects again
      load();
      timer = setTimeout(connect, minute);
    };
  }

  // end is for a page that no longer exists, or a session that has ended.
  function end() {
    paused = true;
    connect();
    button.hidden = true;
    status.textContent = panel.dataset.end;
  }

  button.onclick = () => {
    paused = !paused;
    button.textContent = paused ? panel.dataset.resume : pause;
    connect();
  };
  document.addEventListener('visibilitychange', connect);
  panel.hidden = false;
  connect();
}

if (panel) startUpdates();
