package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/prove/flood"
	"croft.dev/croft/internal/test/sandbox"
)

// TestFloods fails if a flood sends no load, if the victim is not measured, if verify does not stop when the victim's
// requests fail, or if objects remain after it, also after an interruption.
func TestFloods(t *testing.T) {
	sandbox.EndToEnd(t)
	t.Parallel() // it mostly waits
	c := startTwoTenants(t)
	floods := func(names, phase string, flags ...string) *exec.Cmd {
		// On a machine with other work, any request may be slow.
		args := append([]string{"verify", "--floods=" + names, "--phase", phase, "--stop-above", "10m", "--yes", "--pool", "pool-a", "--image", "any/croft"}, flags...)
		cmd := exec.CommandContext(t.Context(), findCroftBinary(t), args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
		return cmd
	}
	t.Run("measured", func(t *testing.T) {
		answer := runCommand(t, floods("configmaps", "2s", "-o", "json"), "")
		var report struct {
			Floods []struct {
				Flood      string
				Requests   *flood.RequestCount
				Operations []flood.Comparison
			}
			Stopped *flood.Stopped
		}
		unmarshalOutput(t, answer, &report)
		if len(report.Floods) != 1 || report.Stopped != nil {
			t.Fatalf("unexpected floods: %s", answer)
		}
		if r := report.Floods[0].Requests; r.Sent == 0 || r.Sent == r.Refused {
			t.Errorf("there was no load: %s", answer)
		}
		slow := false
		for _, o := range report.Floods[0].Operations {
			slow = slow || !o.IsGood()
			if o.Alone.Samples == 0 || o.During.Samples == 0 || o.During.P50 == 0 {
				t.Errorf("%s was not measured: %s", o.Operation, answer)
			}
		}
		if slow != (answer.status == 1) || !slow && answer.status != 0 || slow && !strings.Contains(answer.stderr, "docs/") {
			t.Errorf("exit status %d: %s", answer.status, answer)
		}
		c.awaitNoScratch(t)
	})
	for _, test := range []struct {
		name   string
		end    func(*testing.T, *exec.Cmd)
		status int
		want   string
	}{
		{"interrupted", func(t *testing.T, cmd *exec.Cmd) {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}, 130, "interrupted: not all floods were measured"},
		{"the victim fails", func(t *testing.T, _ *exec.Cmd) { c.deleteSecretOfVictim(t) }, 1,
			"stopped at the flood leases: the victim failed: get a Secret: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := floods("leases", "3s")
			var stderr bytes.Buffer
			cmd.Dir, cmd.Stderr = root, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			awaitCondition(t, moments, "a flood", func(ctx context.Context) error {
				var leases coordinationv1.LeaseList
				if err := c.admin.List(ctx, &leases, client.HasLabels{"verify.croft.dev/flood"}); err != nil {
					return err
				}
				if len(leases.Items) == 0 {
					return errors.New("there is none")
				}
				return nil
			})
			test.end(t, cmd)
			err := cmd.Wait()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != test.status || !strings.Contains(stderr.String(), test.want) {
				t.Errorf("it ended with %v: %s", err, stderr.String())
			}
			c.awaitNoScratch(t)
		})
	}
}

// deleteSecretOfVictim deletes the Secret that the victim reads.
func (c *cluster) deleteSecretOfVictim(t *testing.T) {
	t.Helper()
	var secrets corev1.SecretList
	if err := c.admin.List(t.Context(), &secrets, client.MatchingFields{"metadata.name": "settings"}); err != nil {
		t.Fatal(err)
	}
	for _, s := range secrets.Items {
		if strings.HasPrefix(s.Namespace, "croft-verify-") {
			if err := c.admin.Delete(t.Context(), &s, &client.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.UID}}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// awaitNoScratch waits until no object of scratch tenants exists. Namespaces are deleted in the background.
func (c *cluster) awaitNoScratch(t *testing.T) {
	t.Helper()
	awaitCondition(t, moments, "the scratch tenants to be deleted", func(context.Context) error {
		left := c.listEverything(t).selectObjects(func(ref apply.Ref) bool { return strings.Contains(ref.Namespace+"/"+ref.Name, "croft-verify-") })
		if len(left) > 0 {
			return fmt.Errorf("they have %d objects, such as %v", len(left), left)
		}
		return nil
	})
}
