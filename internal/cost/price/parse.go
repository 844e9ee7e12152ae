package price

import (
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/wording"
)

// These are the capacity types that Karpenter knows.
const (
	onDemandType = "on-demand"
	spot         = "spot"
	reserved     = "reserved"
)

var (
	capacityTypes = []string{onDemandType, reserved, spot}
	currencyCode  = regexp.MustCompile(`^[A-Z]{3}$`)
	isoDay        = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)
)

// reader reads one file of prices, and collects its problems.
type reader struct {
	name     string
	document *document.Document
	problems document.Problems
}

// Parse reads the platform's file of prices:
//
//	currency: EUR
//	exchangeRate: {perUSD: 0.92, date: 2026-11-01}
//	instances:
//	  m5.large: {on-demand: 0.0883, spot: 0.031}
//	pools:
//	  apps: {on-demand: 0.72}     # the factor of a savings plan
//	volumes:
//	  gp3: 0.0736                 # per GiB and month, by StorageClass
//	loadBalancerHour: 0.0207
//
// All of its prices are in its currency. name is the file's name in problems and sources.
func Parse(name string, data []byte) (*List, error) {
	documents, problems := document.Read(name, data)
	if len(problems) > 0 {
		return nil, problems
	}
	if len(documents) != 1 {
		return nil, document.Problems{{File: name, Message: "must be one document, such as {currency: USD, " +
			"loadBalancerHour: 0.0225}"}}
	}
	r := &reader{name: name, document: &documents[0]}
	l := r.readList(documents[0].Content)
	if len(r.problems) > 0 {
		return nil, r.problems.Sorted()
	}
	return l, nil
}

func (r *reader) readList(content map[string]any) *List {
	r.checkFields(nil, content, "currency", "exchangeRate", "instances", "pools", "volumes", "loadBalancerHour")
	l := &List{Currency: dollar, file: r.name}
	if v, found := content["currency"]; found {
		l.Currency, _ = v.(string)
	}
	if currencyCode.MatchString(l.Currency) {
		r.readExchangeRate(l, content)
	} else {
		r.report([]string{"currency"}, "%s is not a currency; write a code of three capital letters, such as EUR",
			wording.Describe(content["currency"]))
	}
	l.instances = r.readByType("instances", content)
	l.factors = r.readByType("pools", content)
	l.volumes = r.readPrices([]string{"volumes"}, content["volumes"])
	if v, found := content["loadBalancerHour"]; found {
		l.loadBalancer = r.readPrice([]string{"loadBalancerHour"}, v)
	}
	return l
}

func (r *reader) readExchangeRate(l *List, content map[string]any) {
	at := []string{"exchangeRate"}
	v, found := content["exchangeRate"]
	switch {
	case found && l.Currency == dollar:
		r.report(at, "has no effect with the currency USD; leave it out")
		return
	case !found && l.Currency != dollar:
		r.report(at, "is required with the currency %s, since other prices are in USD; write {perUSD: 0.92, "+
			"date: 2026-11-01}", l.Currency)
		return
	case !found:
		return
	}
	fields, _ := v.(map[string]any)
	r.checkFields(at, fields, "perUSD", "date")
	l.perDollar = r.readPrice(append(at, "perUSD"), fields["perUSD"])
	if l.perDollar != nil && l.perDollar.Sign() == 0 {
		r.report(append(at, "perUSD"), "must be above 0")
	}
	if l.day, _ = fields["date"].(string); !isoDay.MatchString(l.day) {
		r.report(append(at, "date"), "%s is not a day; write the day of the rate, such as 2026-11-01",
			wording.Describe(fields["date"]))
	}
}

// readByType reads a mapping of names to numbers by capacity type.
func (r *reader) readByType(field string, content map[string]any) map[string]map[string]*big.Rat {
	all := map[string]map[string]*big.Rat{}
	entries, is := content[field].(map[string]any)
	if _, found := content[field]; found && !is {
		r.report([]string{field}, "must be a mapping, such as {%s: {on-demand: 0.72}}, not %s",
			map[string]string{"instances": "m5.large", "pools": "apps"}[field], wording.Describe(content[field]))
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		at := []string{field, name}
		fields, is := entries[name].(map[string]any)
		if !is {
			r.report(at, "must be a mapping of capacity types; write {on-demand: %s}", wording.Text(entries[name]))
			continue
		}
		r.checkFields(at, fields, capacityTypes...)
		all[name] = r.readPrices(at, fields)
	}
	return all
}

func (r *reader) readPrices(at []string, v any) map[string]*big.Rat {
	all := map[string]*big.Rat{}
	entries, is := v.(map[string]any)
	if v != nil && !is {
		r.report(at, "must be a mapping, such as {gp3: 0.08}, not %s", wording.Describe(v))
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		all[name] = r.readPrice(append(slices.Clone(at), name), entries[name])
	}
	return all
}

func (r *reader) readPrice(at []string, v any) *big.Rat {
	if !wording.IsScalar(v) {
		r.report(at, "must be a number, such as 0.0225, not %s", wording.Describe(v))
		return nil
	}
	// The shortest text of a floating point number is the number that the author wrote.
	rate, err := money.ParsePrice(wording.Text(v))
	if err != nil {
		r.report(at, "%s: %s", wording.Describe(v), err)
		return nil
	}
	return rate
}

func (r *reader) checkFields(at []string, fields map[string]any, known ...string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(known, name) {
			continue
		}
		message := "there is no such field; the fields are " + wording.Enumerate(known, "and")
		if like, ok := wording.Nearest(name, known); ok {
			message = fmt.Sprintf("there is no such field; did you mean %s?", like)
		}
		r.report(append(slices.Clone(at), name), "%s", message)
	}
}

func (r *reader) report(at []string, format string, args ...any) {
	r.problems = append(r.problems, document.Problem{
		File: r.name, Line: r.document.FindLine(at...), Path: strings.Join(at, "."), Message: fmt.Sprintf(format, args...),
	})
}
