package boot

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

// width is the maximum length of the part of a line that is read, in bytes. No event needs
// more.
const width = 4096

// Read adds the lines of a text: /var/log/messages, cloud-init.log, cloud-init-output.log,
// a container's log, or the output of journalctl in the formats short, short-iso,
// short-iso-precise and json. It ignores other lines. It returns the number of lines with a
// time.
//
// For times without a year, Read chooses the year in which they are nearest to near, such
// as the node's creation time. Times without a zone are UTC, as on EC2.
func (l *Log) Read(r io.Reader, near time.Time) (timed int, err error) {
	input := bufio.NewReaderSize(r, width)
	for {
		text, isPrefix, err := input.ReadLine()
		if errors.Is(err, io.EOF) {
			return timed, nil
		}
		if err != nil {
			return timed, err
		}
		if line, ok := ParseLine(string(text), near); ok {
			timed++
			l.Add(line)
		}
		for isPrefix && err == nil {
			_, isPrefix, err = input.ReadLine()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return timed, err
		}
	}
}

// ParseLine parses a line of a log. It returns false if the line has no time.
func ParseLine(text string, near time.Time) (Line, bool) {
	switch {
	case strings.HasPrefix(text, "{"):
		return parseJSON(text)
	case strings.HasPrefix(text, "Cloud-init v. "):
		return parseCloudInit(text)
	case len(text) > 4 && text[4] == '-':
		return parseISO(text)
	default:
		return parseSyslog(text, near)
	}
}

// parseJSON parses the format of journalctl -o json.
func parseJSON(text string) (Line, bool) {
	var entry struct {
		Time       string          `json:"__REALTIME_TIMESTAMP"`
		Identifier string          `json:"SYSLOG_IDENTIFIER"`
		Message    json.RawMessage `json:"MESSAGE"`
	}
	if json.Unmarshal([]byte(text), &entry) != nil {
		return Line{}, false
	}
	micros, err := strconv.ParseInt(entry.Time, 10, 64)
	if err != nil || micros <= 0 {
		return Line{}, false
	}
	line := Line{Time: time.UnixMicro(micros).UTC(), Source: entry.Identifier}
	return line, json.Unmarshal(entry.Message, &line.Text) == nil // a message that is not text is a list of bytes
}

// parseCloudInit parses cloud-init-output.log: "Cloud-init v. 22.2.2 running 'init' at Mon,
// 21 Aug 2023 14:59:33 +0000. Up 4.48 seconds."
func parseCloudInit(text string) (Line, bool) {
	_, at, _ := strings.Cut(text, " at ")
	if len(at) < len(time.RFC1123Z) {
		return Line{}, false
	}
	t, err := time.Parse(time.RFC1123Z, at[:len(time.RFC1123Z)])
	return Line{Time: t.UTC(), Source: "cloud-init", Text: text}, err == nil
}

// parseISO parses "2022-11-28T02:59:07.123456+0000 host kernel: text" of journalctl and
// rsyslog, "2022-11-28T02:59:07.123Z stdout F text" of a container, and "2022-11-28
// 02:59:10,123 - util.py[DEBUG]: text" of cloud-init.log.
func parseISO(text string) (Line, bool) {
	stamp, rest, _ := strings.Cut(text, " ")
	if clock, after, ok := strings.Cut(rest, " - "); ok && !strings.Contains(stamp, "T") {
		t, err := time.Parse("2006-01-02 15:04:05,000", stamp+" "+clock)
		_, message, _ := strings.Cut(after, ": ")
		return Line{Time: t, Text: message}, err == nil
	}
	var t time.Time
	err := errors.New("no time")
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05-0700"} {
		if err != nil {
			t, err = time.Parse(layout, stamp)
		}
	}
	if err != nil {
		return Line{}, false
	}
	for _, stream := range []string{"stdout F ", "stderr F "} {
		if message, ok := strings.CutPrefix(rest, stream); ok {
			return Line{Time: t.UTC(), Text: message}, true
		}
	}
	return parseSource(t.UTC(), rest), true
}

// parseSyslog parses "Nov 28 02:59:07 host kernel: text".
func parseSyslog(text string, near time.Time) (Line, bool) {
	if len(text) < len(time.Stamp) {
		return Line{}, false
	}
	t, err := time.Parse(time.Stamp, text[:len(time.Stamp)])
	if err != nil {
		return Line{}, false
	}
	return parseSource(moveToNearestYear(t, near), strings.TrimPrefix(text[len(time.Stamp):], " ")), true
}

// moveToNearestYear moves a time of the year 0 to the year in which it is nearest to another time.
func moveToNearestYear(t, near time.Time) time.Time {
	near = near.UTC()
	best := t.AddDate(near.Year(), 0, 0)
	for _, year := range []int{near.Year() - 1, near.Year() + 1} {
		if other := t.AddDate(year, 0, 0); other.Sub(near).Abs() < best.Sub(near).Abs() {
			best = other
		}
	}
	return best
}

// parseSource parses "host source[pid]: text". Some journals omit the host.
func parseSource(t time.Time, rest string) Line {
	head, message, ok := strings.Cut(rest, ": ")
	if !ok {
		return Line{Time: t}
	}
	source := head[strings.LastIndexByte(head, ' ')+1:]
	source, _, _ = strings.Cut(source, "[")
	return Line{Time: t, Source: source, Text: message}
}
