package server

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const logAPI = "/api/v1/namespaces/shop/pods/web-1/log"

// formatLogLine returns a line of a log with a time.
func formatLogLine(nanoseconds int, text string) string {
	return fmt.Sprintf("2026-11-27T12:00:%02d.%09dZ %s\n", nanoseconds/1e9, nanoseconds%1e9, text)
}

// TestFollowedLog expects each line once, also after a lost connection, and no event that a line has
// forged.
func TestFollowedLog(t *testing.T) {
	const path = "/namespaces/shop/workloads/pod/web-1/log?container=side&live=1"
	a := startAPIServer(t)
	a.objects[logAPI] = formatLogLine(1, "first") + formatLogLine(2, "<b>\rid: x\rdata: forged\x1b[2J\u2028") + formatLogLine(3, "") + "no time\n" + formatLogLine(4, strings.Repeat("long", 1<<20)) + strings.TrimSuffix(formatLogLine(5, "last"), "\n")
	b := startDashboard(t, a)().logIn("ana-token")
	a.takeRequests()
	got := b.getPage(path)
	if got.status != http.StatusOK || got.header.Get("Content-Type") != "text/event-stream" || len(got.body) > 5000 || strings.ContainsAny(got.body, "\r\x1b\u2028") {
		t.Errorf("status %d, %s, %d bytes", got.status, got.header.Get("Content-Type"), len(got.body))
	}
	events := strings.Split(got.body, "\n\n")
	want := "data: first\ndata: <b>\\x0did: x\\x0ddata: forged\\x1b[2J\\u2028\ndata: \ndata: " + strings.Repeat("long", 500) + "…\ndata: last\nid: 2026-11-27T12:00:00.000000005Z"
	if len(events) != 4 || events[1] != want || events[2] != "event: end\ndata: " {
		t.Errorf("got %.6000q, want %q", events, want)
	}
	again := b.sendRequest(http.MethodGet, path, nil, map[string]string{"Last-Event-ID": "2026-11-27T12:00:00.000000003Z"})
	if strings.Contains(again.body, "first") || !strings.Contains(again.body, "data: last\nid: 2026") {
		t.Errorf("after a lost connection: %.500s", again.body)
	}
	forged := b.sendRequest(http.MethodGet, path, nil, map[string]string{"Last-Event-ID": "x&container=main"})
	if !strings.Contains(forged.body, "data: first") {
		t.Errorf("an invalid identifier: %.500s", forged.body)
	}
	var queries []string
	for _, r := range a.takeRequests() {
		queries = append(queries, r.URL.RawQuery)
	}
	const tail, since = "container=side&follow=true&tailLines=200&timestamps=true", "container=side&follow=true&sinceTime=2026-11-27T12%3A00%3A00Z&timestamps=true"
	if len(queries) != 3 || queries[0] != tail || queries[1] != since || queries[2] != tail {
		t.Errorf("requests %q", queries)
	}
	for _, hidden := range []string{"/namespaces/bank/workloads/pod/web-1/log?container=side&live=1", "/namespaces/shop/workloads/pod/other/log?container=side&live=1"} {
		if got := b.getPage(hidden); got.status != http.StatusNotFound || got.body != b.getPage("/namespaces/nowhere").body {
			t.Errorf("%s: status %d", hidden, got.status)
		}
	}
	a.setStatus(logAPI, http.StatusBadRequest)
	if got := b.getPage(path); got.status != http.StatusNotFound {
		t.Errorf("a container without a log: status %d", got.status)
	}
}

// TestFastLog expects a limited number of lines, and the number of the others.
func TestFastLog(t *testing.T) {
	const total = 200_000
	var text strings.Builder
	for i := range total {
		text.WriteString(formatLogLine(i+1, fmt.Sprint("line ", i)))
	}
	a := startAPIServer(t)
	a.objects[logAPI] = text.String()
	b := startDashboard(t, a)().logIn("ana-token")
	body := b.getPage("/namespaces/shop/workloads/pod/web-1/log?container=main&live=1").body
	shown, skipped, batch := 0, 0, 0
	isSkipped := false
	for scanner := bufio.NewScanner(strings.NewReader(body)); scanner.Scan(); {
		data, isData := strings.CutPrefix(scanner.Text(), "data: ")
		switch {
		case scanner.Text() == "event: skipped":
			isSkipped = true
		case isData && isSkipped:
			var n int
			if _, err := fmt.Sscan(data, &n); err != nil {
				t.Fatal(err)
			}
			skipped, isSkipped = skipped+n, false
		case strings.HasPrefix(data, "line "):
			shown++
			batch++
		default:
			if batch > mostWaiting {
				t.Errorf("%d lines at once", batch)
			}
			batch = 0
		}
	}
	if shown+skipped != total || skipped == 0 || !strings.Contains(body, "event: end") {
		t.Errorf("%d lines and %d others, want %d", shown, skipped, total)
	}
}
