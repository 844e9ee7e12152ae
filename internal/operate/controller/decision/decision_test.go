package decision_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/logging"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/decision"
)

// TestLog expects a line at info level only if something has changed.
func TestLog(t *testing.T) {
	made, same := apply.Change{Action: apply.Created}, apply.Change{Action: apply.Unchanged}
	for _, test := range []struct {
		name    string
		changes []apply.Change
		ready   *metav1.Condition
		level   string
		want    string
	}{
		{"steady", []apply.Change{same, {Action: apply.Failed}}, nil, "DEBUG", ""},
		{"objects were written", []apply.Change{made, same, made, {Action: apply.Deleted}}, nil, "INFO", ` changes="2 created, 1 deleted"`},
		{"Ready", nil, &metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady}, "INFO", " ready=True reason=Ready"},
		{"not Ready", nil, &metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInvalid, Message: "no pool"}, "INFO", ` ready=False reason=Invalid message="no pool"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var lines bytes.Buffer
			o := logging.Options{Format: "text"}
			if err := o.Levels.Set("info,tenant=debug"); err != nil {
				t.Fatal(err)
			}
			l := logr.FromSlogHandler(o.NewHandler(&lines)).WithValues("controller", "tenant")
			tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop", Generation: 3}}
			decision.Log(log.IntoContext(t.Context(), l), "tenant", tenant, time.Now(), test.changes, test.ready)
			want := " level=" + test.level + ` msg="reconciled a tenant" controller=tenant tenant=shop generation=3 duration=D` + test.want + "\n"
			got := regexp.MustCompile(`duration=\S+`).ReplaceAllString(lines.String(), "duration=D")
			if !strings.HasSuffix(got, want) {
				t.Errorf("logged %s\nwant %s", got, want)
			}
		})
	}
}
