package logging

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// names are the names of the levels.
var names = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// Levels are the lowest levels that are logged. The zero value is info for all subsystems. It
// implements pflag.Value.
type Levels struct {
	others     slog.Level
	subsystems map[string]slog.Level
}

// Set parses a level for all subsystems, levels for single ones, or both, such as
// info,tenant=debug.
func (l *Levels) Set(text string) error {
	parsed := Levels{subsystems: map[string]slog.Level{}}
	for part := range strings.SplitSeq(text, ",") {
		subsystem, name, single := strings.Cut(part, "=")
		if !single {
			name = part
		}
		level, known := names[name]
		switch {
		case single && subsystem == "":
			return fmt.Errorf("%q names no subsystem: write a level, or SUBSYSTEM=LEVEL", part)
		case !known:
			return fmt.Errorf("%q is no level: the levels are debug, info, warn and error, as in info,tenant=debug", name)
		case single:
			parsed.subsystems[subsystem] = level
		default:
			parsed.others = level
		}
	}
	*l = parsed
	return nil
}

// String returns the levels as Set reads them.
func (l *Levels) String() string {
	parts := []string{formatLevel(l.others)}
	for _, subsystem := range slices.Sorted(maps.Keys(l.subsystems)) {
		parts = append(parts, subsystem+"="+formatLevel(l.subsystems[subsystem]))
	}
	return strings.Join(parts, ",")
}

// Type is the type in the help.
func (l *Levels) Type() string { return "string" }

func formatLevel(level slog.Level) string { return strings.ToLower(level.String()) }

// get returns the level of a subsystem.
func (l *Levels) get(subsystem string) slog.Level {
	if level, ok := l.subsystems[subsystem]; ok {
		return level
	}
	return l.others
}

// lowest returns the lowest level of any subsystem.
func (l *Levels) lowest() slog.Level {
	return slices.Min(append(slices.Collect(maps.Values(l.subsystems)), l.others))
}

// Format is the format of the log, json by default. It implements pflag.Value.
type Format string

// Set parses a format.
func (f *Format) Set(text string) error {
	if text != "json" && text != "text" {
		return fmt.Errorf("%q is no format: the formats are json and text", text)
	}
	*f = Format(text)
	return nil
}

// String returns the format as Set reads it.
func (f *Format) String() string {
	if *f == "" {
		return "json"
	}
	return string(*f)
}

// Type is the type in the help.
func (f *Format) Type() string { return "string" }
