package server

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"golang.org/x/time/rate"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/report"
	"croft.dev/croft/internal/cost/store"
)

// reader is a caller who may read a part of the costs.
type reader struct {
	token, namespace string
	// owns reports whether the caller may know a row.
	owns func(*ledger.Row) bool
	// shares means that some of these rows are of the shared pool.
	shares bool
}

var (
	ownsShop = func(r *ledger.Row) bool { return r.Tenant == "shop" }
	ownsDev  = func(r *ledger.Row) bool { return r.Tenant == "shop" && r.Namespace == "shop-dev" }
	readers  = []reader{
		{"ana-token", "shop-prod", ownsShop, true}, {"ana-token", "shop-dev", ownsShop, true}, {"dev-token", "shop-dev", ownsDev, false}, {"robot-token", "shop-dev", ownsDev, false},
		{"sre-token", "kube-system", func(r *ledger.Row) bool { return r.Namespace == "kube-system" }, true},
		{"bob-token", "bank", func(r *ledger.Row) bool { return r.Tenant == "bank" }, true},
	}
)

// listAnswers returns a server's answers to a caller in all groupings, periods and resources.
func listAnswers(t *testing.T, s *server, token, namespace string) map[string]string {
	t.Helper()
	s.limiter.SetLimit(rate.Inf)
	answers := map[string]string{}
	for _, path := range []string{Path, ChargesPath, HistoryPath} {
		for _, by := range report.Groupings() {
			for _, since := range []string{"1s", "1h", "2h", "35d"} {
				request := fmt.Sprintf("GET %s?since=%s&by=%s", path, since, by)
				if namespace != "" {
					request += "&namespace=" + namespace
				}
				status, body := sendRequest(s, request, token)
				if status != http.StatusOK {
					t.Fatalf("%s as %s: %d %s", request, token, status, body)
				}
				answers[request] = body
			}
		}
	}
	return answers
}

// findAmounts returns the amounts of money in answers, with a request that returned each.
func findAmounts(t *testing.T, answers map[string]string) map[money.Amount]string {
	t.Helper()
	amounts := map[money.Amount]string{0: "nothing"}
	pattern := regexp.MustCompile(`"\d+\.\d{6}"`)
	for _, request := range slices.Sorted(maps.Keys(answers)) {
		for _, text := range pattern.FindAllString(answers[request], -1) {
			var amount money.Amount
			if err := amount.UnmarshalJSON([]byte(text)); err != nil {
				t.Fatal(err)
			}
			if amounts[amount] == "" {
				amounts[amount] = request
			}
		}
	}
	return amounts
}

// newWorldOf returns a world with the rows that keep returns true for. keep may change them. Their amounts are random, so that
// two sums of different rows have different results.
func newWorldOf(keep func(*ledger.Row) bool) *world {
	w, r := newWorld(), rand.New(rand.NewPCG(1, 8)) //nolint:gosec // a test repeats its numbers
	for _, record := range []*store.Record{&w.view.Next, &w.records[0], &w.records[1]} {
		var rows []ledger.Row
		for _, row := range record.Rows {
			row.Cost = money.Amount(r.Int64N(1e12))
			if row.Idle != 0 {
				row.Idle = money.Amount(r.Int64N(1e12))
			}
			if keep(&row) {
				rows = append(rows, row)
			}
		}
		record.Rows = rows
	}
	return w
}

func keepAll(*ledger.Row) bool { return true }

// findSecrets returns all amounts about rows that none of some callers may know: of each line, period and total, and the shares
// of their own workloads in the idle cost of the shared pool.
func findSecrets(t *testing.T, callers ...reader) map[money.Amount]string {
	t.Helper()
	isOwn := func(r *ledger.Row) bool {
		return slices.ContainsFunc(callers, func(c reader) bool { return c.owns(r) })
	}
	s, _ := newTestServer()
	s.Source = newWorldOf(func(r *ledger.Row) bool { return !isOwn(r) })
	secrets := findAmounts(t, listAnswers(t, s, "auditor-token", ""))
	s.Source = newWorldOf(func(r *ledger.Row) bool {
		r.Cost = 0
		return isOwn(r) && r.Pool == "apps"
	})
	maps.Copy(secrets, findAmounts(t, listAnswers(t, s, "auditor-token", "")))
	delete(secrets, 0)
	return secrets
}

// findSecretDifferences returns the secrets among the differences between two answers, or between
// an answer and nothing.
func findSecretDifferences(first, second, secrets map[money.Amount]string) []string {
	var found []string
	for a, request := range first {
		for b, other := range second {
			if secret := secrets[max(a-b, b-a)]; secret != "" {
				found = append(found, fmt.Sprintf("%s of (%s) - %s of (%s) = %s of (%s)", a, request, b, other, max(a-b, b-a), secret))
			}
		}
	}
	slices.Sort(found)
	return found
}

// TestDifferences subtracts each pair of amounts in the answers to one or two callers, in all groupings, periods and
// resources. No difference is an amount about others.
func TestDifferences(t *testing.T) {
	amounts := make([]map[money.Amount]string, len(readers))
	for i, r := range readers {
		s, _ := newTestServer()
		s.Source = newWorldOf(keepAll)
		amounts[i] = findAmounts(t, listAnswers(t, s, r.token, r.namespace))
	}
	for i, r := range readers {
		for j := i; j < len(readers); j++ {
			if found := findSecretDifferences(amounts[i], amounts[j], findSecrets(t, r, readers[j])); len(found) > 0 {
				t.Errorf("%s and %s can compute %d amounts about others, such as %s", r.token, readers[j].token, len(found), found[0])
			}
		}
	}
	// Without a filter, a difference reveals others that no answer shows: a total contains them, with other costs.
	ana := readers[0]
	for _, removed := range [][]guard{{filterIdle}, {filterTenant}, {filterNamespace, filterTenant}} {
		s := newServerWithout(removed...)
		s.Source = newWorldOf(keepAll)
		leaking := findAmounts(t, listAnswers(t, s, ana.token, ana.namespace))
		secrets := findSecrets(t, ana)
		maps.DeleteFunc(leaking, func(a money.Amount, _ string) bool { return secrets[a] != "" })
		if len(findSecretDifferences(amounts[0], leaking, secrets)) == 0 {
			t.Errorf("without %q, no difference reveals others", removed)
		}
	}
}

// TestAnswersAreIndependentOfOthers changes the rows of others at random: their amounts, requests, names and number.
// All answers to a caller stay the same, byte by byte, so that nothing about others can be computed from any number of
// them.
func TestAnswersAreIndependentOfOthers(t *testing.T) {
	change := func(r *rand.Rand, c reader) *world {
		w := newWorldOf(func(row *ledger.Row) bool {
			if c.owns(row) {
				if row.Pool == "apps" {
					row.Idle = money.Amount(r.Int64N(1e9))
				}
				return true
			}
			row.Cost, row.Idle = money.Amount(r.Int64N(1e9)), money.Amount(r.Int64N(1e9))
			row.CPU, row.Memory, row.Unpriced = r.Int64N(1e9), r.Int64N(1e9), r.Int64N(2)*3600
			row.UsedCPU, row.UsedMemory, row.Measured, row.Unmeasured = r.Int64N(1e6), r.Int64N(1e6), r.Int64N(3600), r.Int64N(3600)
			row.PriceSource, row.CostCode = fmt.Sprint("list ", r.IntN(9)), fmt.Sprint("code-", r.IntN(9))
			if row.Workload != "" {
				row.Workload = fmt.Sprint("Deployment/", r.IntN(9))
			}
			return r.IntN(4) > 0
		})
		for _, record := range []*store.Record{&w.view.Next, &w.records[0], &w.records[1]} {
			record.Nodes, record.Volumes = money.Amount(r.Int64N(1e9)), money.Amount(r.Int64N(1e9))
		}
		return w
	}
	compare := func(c reader, removed ...guard) (same bool) {
		var want map[string]string
		for seed := range uint64(5) {
			s := newServerWithout(removed...)
			s.Source = change(rand.New(rand.NewPCG(seed, 7)), c) //nolint:gosec // a test repeats its numbers
			answers := listAnswers(t, s, c.token, c.namespace)
			if want == nil {
				want = answers
			}
			for request, body := range answers {
				if body != want[request] {
					if len(removed) == 0 {
						t.Errorf("%s as %s depends on others:\n%s\n%s", request, c.token, body, want[request])
					}
					return false
				}
			}
		}
		return true
	}
	for _, c := range readers {
		compare(c)
		if c.shares && compare(c, filterIdle) {
			t.Errorf("%s: without the filter of idle cost, the answers do not depend on others", c.token)
		}
		if compare(c, filterNamespace, filterTenant) {
			t.Errorf("%s: without the filters of rows, the answers do not depend on others", c.token)
		}
	}
}
