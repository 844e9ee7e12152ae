// Package logging configures the logs of croft's long-running processes. The level of a line
// depends on its subsystem, which is the name of its logger or of its controller.
package logging

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Options are the flags of a long-running process. The zero value logs JSON at level info.
type Options struct {
	Levels Levels
	Format Format
	// Verbosity is klog's. If it is set, all lines up to this verbosity are logged.
	Verbosity uint
}

// AddFlags adds the flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.Var(&o.Levels, "log-level", "lowest level that is logged: debug, info, warn or error; also for one subsystem, as in info,tenant=debug")
	flags.Var(&o.Format, "log-format", "format of the log: json or text")
}

// NewHandler returns a handler that writes to w.
func (o *Options) NewHandler(w io.Writer) slog.Handler {
	// The wrapping handler filters by level.
	all := &slog.HandlerOptions{Level: slog.Level(math.MinInt), ReplaceAttr: replaceAttr}
	h := &handler{Handler: slog.NewJSONHandler(w, all), levels: o.Levels}
	if o.Format == "text" {
		h.Handler = slog.NewTextHandler(w, all)
	}
	if o.Verbosity > 0 {
		h.levels = Levels{others: min(o.Levels.others, -slog.Level(o.Verbosity))}
	}
	return h
}

// Install makes the loggers of controller-runtime and klog use a handler, in the whole
// process. It returns the logger.
func Install(h slog.Handler) logr.Logger {
	l := logr.FromSlogHandler(h)
	log.SetLogger(l)
	klog.SetLogger(l.WithName("klog"))
	return l
}

// handler filters by the level of the subsystem.
type handler struct {
	slog.Handler
	levels Levels
	// subsystem is known if a controller or a logger has set it in its attributes.
	subsystem string
}

// Enabled implements slog.Handler. If the subsystem is not known yet, Handle decides.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	if h.subsystem == "" {
		return level >= h.levels.lowest()
	}
	return level >= h.levels.get(h.subsystem)
}

// Handle implements slog.Handler. A named logger of logr has its name in each record.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	subsystem := h.subsystem
	r.Attrs(func(a slog.Attr) bool {
		if subsystem == "" {
			subsystem = findSubsystem([]slog.Attr{a})
		}
		return subsystem == ""
	})
	if r.Level < h.levels.get(subsystem) {
		return nil
	}
	if r.Level < slog.LevelInfo {
		r.Level = slog.LevelDebug // klog's verbosities have no names
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.Handler = h.Handler.WithAttrs(attrs)
	if with.subsystem == "" {
		with.subsystem = findSubsystem(attrs)
	}
	return &with
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	with := *h
	with.Handler = h.Handler.WithGroup(name)
	return &with
}

// findSubsystem returns the name of a logger or of a controller, without the names below it.
func findSubsystem(attrs []slog.Attr) string {
	i := slices.IndexFunc(attrs, func(a slog.Attr) bool { return a.Key == "logger" || a.Key == "controller" })
	if i < 0 {
		return ""
	}
	name, _, _ := strings.Cut(attrs[i].Value.String(), "/")
	return name
}

// replaceAttr logs a value by its String method. Some values that controller-runtime logs
// cannot be encoded as JSON.
func replaceAttr(_ []string, a slog.Attr) slog.Attr {
	if s, ok := a.Value.Any().(fmt.Stringer); ok && a.Value.Kind() == slog.KindAny {
		a.Value = slog.StringValue(s.String())
	}
	return a
}
