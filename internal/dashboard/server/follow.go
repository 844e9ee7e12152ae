package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/dashboard/cluster"
	"croft.dev/croft/internal/dashboard/page"
	"croft.dev/croft/internal/dashboard/session"
	"croft.dev/croft/internal/declare/wording"
)

const (
	// logFlush is the time in which lines are collected before they are sent together.
	logFlush = 200 * time.Millisecond
	// mostWaiting is the maximum number of lines that wait for the browser. Of a log that is faster, the page
	// shows the last lines, and the number of the others. The download has all of them.
	mostWaiting = 500
	// longestTime is more than the length of the time before each line.
	longestTime = 64
	// lastEventID is the header in which a browser names the last event that it has got.
	lastEventID = "Last-Event-ID"
)

// logLine is a line of a log with its time.
type logLine struct{ time, text string }

// logBuffer has the lines that wait for the browser. Its size is limited.
type logBuffer struct {
	mu      sync.Mutex
	lines   []logLine
	skipped int
}

func (b *logBuffer) add(l logLine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lines) == mostWaiting {
		// Half of the lines at once, so that a fast log does not move all lines for each one.
		b.skipped += mostWaiting / 2
		b.lines = append(b.lines[:0], b.lines[mostWaiting/2:]...)
	}
	b.lines = append(b.lines, l)
}

// take removes the lines, and returns them with the number of lines that were left out before them.
func (b *logBuffer) take() (lines []logLine, skipped int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines, skipped = b.lines, b.skipped
	b.lines, b.skipped = nil, 0
	return lines, skipped
}

// followLog sends the last lines of a container's log as server-sent events, and then each new one. The
// identifier of an event is the time of its last line, from which the browser continues after a lost
// connection.
func (d *dashboard) followLog(w http.ResponseWriter, r *http.Request, s session.Session, c *cluster.Client, pod client.ObjectKey, container string) {
	ctx, end := context.WithDeadline(r.Context(), d.findStreamEnd(s, time.Now()))
	defer end()
	entry := &openStream{user: s.User, session: s.CSRF, end: end}
	if !d.streams.add(entry) {
		http.Error(w, "too many pages are open", http.StatusTooManyRequests)
		return
	}
	defer d.streams.remove(entry)
	o := &corev1.PodLogOptions{Container: container, Follow: true, Timestamps: true}
	last := r.Header.Get(lastEventID)
	if since, err := time.Parse(time.RFC3339Nano, last); err == nil {
		o.SinceTime = ptr.To(metav1.NewTime(since)) // in whole seconds
	} else {
		last, o.TailLines = "", ptr.To[int64](tailLines)
	}
	log, err := c.OpenLog(ctx, pod, o)
	if err != nil {
		if apierrors.IsBadRequest(err) {
			err = errMissing // there is no such container, or it has no log yet
		}
		d.respondError(w, r, s, err)
		return
	}
	defer log.Close()
	lines, ended := &logBuffer{}, make(chan error, 1)
	go func() { ended <- readLines(log, last, lines) }()
	l := &liveStream{dashboard: d, w: w, r: r, session: s}
	l.begin(ctx)
	if err := l.write(": open\n\n"); err != nil {
		return
	}
	l.sendLines(ctx, lines, ended)
}

// sendLines sends lines until the log or the stream ends.
func (l *liveStream) sendLines(ctx context.Context, lines *logBuffer, ended <-chan error) {
	flush := time.NewTicker(logFlush)
	defer flush.Stop()
	life := time.NewTicker(l.pace.tick*3/4 + rand.N(l.pace.tick/2))
	defer life.Stop()
	for {
		text := ""
		var err error
		isLast := false
		select {
		case <-ctx.Done():
			return
		case <-l.Stopping:
			return
		case <-life.C:
			text = ": open\n\n"
		case <-flush.C:
		case err = <-ended:
			isLast = true
		}
		text += formatLines(lines.take())
		if isLast && err == nil {
			text += "event: end\ndata: \n\n"
		}
		if text != "" && l.write(text) != nil || isLast {
			return
		}
	}
}

// readLines reads lines until the log ends. Lines up to the time last were sent before.
func readLines(log io.Reader, last string, into *logBuffer) error {
	lastTime, _ := time.Parse(time.RFC3339Nano, last)
	reader := bufio.NewReader(log)
	for {
		line, err := readLine(reader)
		if at, text, ok := strings.Cut(line, " "); ok {
			if t, err := time.Parse(time.RFC3339Nano, at); err == nil && t.After(lastTime) {
				into.add(logLine{at, text})
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// readLine returns a line without its end. Of a long line, it keeps the beginning, so that the memory is
// limited.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, isPrefix, err := r.ReadLine()
		if room := page.LongestLine + longestTime - len(line); room > 0 {
			line = append(line, part[:min(len(part), room)]...)
		}
		if !isPrefix || err != nil {
			return string(line), err
		}
	}
}

// formatLines formats lines as events. Control characters, which could begin another event, are escaped.
func formatLines(lines []logLine, skipped int) string {
	var b strings.Builder
	if skipped > 0 {
		b.WriteString("event: skipped\ndata: " + strconv.Itoa(skipped) + "\n\n")
	}
	if len(lines) == 0 {
		return b.String()
	}
	for _, l := range lines {
		b.WriteString("data: " + wording.EscapeControls(page.ClipLine(l.text)) + "\n")
	}
	b.WriteString("id: " + lines[len(lines)-1].time + "\n\n")
	return b.String()
}
