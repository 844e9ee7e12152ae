// Package ruletest tests single rules of the walls with the API server's own admission code
// and without a cluster. The cases are in the rules' files: see [rulefile.Cases]. Rules in Go
// have their cases in testdata/rules, in files with only cases.
package ruletest

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"croft.dev/croft/internal/rules/evaluator"
	"croft.dev/croft/internal/rules/rulefile"
)

// Tenant is the name of the tenant, Namespace its namespace, and Other a namespace of another
// tenant.
const (
	Tenant    = "shop"
	Namespace = "shop"
	Other     = "bank"
)

// ReadFiles returns all cases in the folder of a wall, by the paths of their files.
func ReadFiles(t testing.TB, folder string) map[string]rulefile.Cases {
	t.Helper()
	files, err := rulefile.ReadCases(os.DirFS(filepath.Join(folder, "rules")))
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(folder, "testdata", "rules", "*.yaml"))
	if err != nil || len(paths)+len(files) == 0 {
		t.Fatalf("there are no cases in %s: %v", folder, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		cases, err := rulefile.ParseCases(data)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		files[strings.TrimSuffix(filepath.Base(path), ".yaml")] = cases
	}
	return files
}

// Run tests every case of every file of a wall.
func Run(t *testing.T) {
	worlds := &evaluatorCache{scene: buildScene(t)}
	for name, file := range ReadFiles(t, ".") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range file.Cases {
				if c.ClusterOnly {
					continue
				}
				t.Run(c.Rule+"/"+c.Name, func(t *testing.T) { runCase(t, worlds, file, c) })
			}
		})
	}
}

func runCase(t *testing.T, worlds *evaluatorCache, file rulefile.Cases, c rulefile.Case) {
	t.Helper()
	e := worlds.getEvaluator(t, file.Platform, file.Tenant, c.Tenant)
	object, old, err := file.BuildObjects(c, worlds.scene)
	if err != nil {
		t.Fatal(err)
	}
	request := evaluator.Request{
		User: buildUser(c), Verb: cmp.Or(c.Verb, "create"), Authorized: true,
		Resource: evaluator.FindResource(object.GroupVersionKind()), Subresource: c.Subresource,
		Namespace: object.GetNamespace(), Name: object.GetName(), Object: object,
	}
	if old != nil {
		request.Verb, request.Old = cmp.Or(c.Verb, "update"), old
	}
	if request.Verb == "delete" {
		request.Old, request.Object = object, nil
	}
	answer, err := e.Evaluate(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	compareAnswer(t, file.FindPolicy(c), c, answer)
}

// compareAnswer compares an answer with the case's expectation.
func compareAnswer(t *testing.T, policy string, c rulefile.Case, answer evaluator.Answer) {
	t.Helper()
	refused := false
	for _, d := range answer.Denials {
		switch {
		case d.DeniedBy == "PodSecurity" || slices.Contains(c.OtherRules, d.Rule):
		case d.Rule != c.Rule || d.DeniedBy != policy:
			t.Errorf("%s of %s refuses it too: %s", d.Rule, d.DeniedBy, d.Message)
		case !strings.Contains(d.Message, rulefile.Scene{Words: words}.ReplaceWords(c.Message)):
			t.Errorf("refused, but with the message %q", d.Message)
		default:
			refused = true
		}
	}
	if refused != c.Refused {
		t.Errorf("refused: %t, want %t; denials: %v", refused, c.Refused, answer.Denials)
	}
	warned := slices.IndexFunc(answer.Warnings, func(w string) bool { return strings.Contains(w, "["+c.Rule+"]") })
	switch {
	case c.Warning == "" && warned >= 0:
		t.Errorf("warned: %s", answer.Warnings[warned])
	case c.Warning != "" && (warned < 0 || !strings.Contains(answer.Warnings[warned], c.Warning)):
		t.Errorf("not warned of %q: %v", c.Warning, answer.Warnings)
	}
}

// buildUser returns the user that sends the request of a case.
func buildUser(c rulefile.Case) user.Info {
	groups := append([]string{user.AllAuthenticated}, c.Groups...)
	if namespace, name, ok := strings.Cut(c.User, "/"); ok {
		account := serviceaccount.UserInfo(namespace, name, "")
		return &user.DefaultInfo{Name: account.GetName(), Groups: append(groups, account.GetGroups()...)}
	}
	return &user.DefaultInfo{Name: cmp.Or(c.User, "ann"), Groups: append(groups, Tenant+"-devs")}
}
