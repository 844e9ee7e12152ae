package benchnodes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/network/attach"
	"croft.dev/croft/internal/operate/controller/interfaces"
	"croft.dev/croft/sandbox/internal/cloud"
	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/service"
)

const (
	cluster      = "demo"
	pool         = "telco"
	instanceType = "c6i.2xlarge" // the post's
	group        = "karpenter.sh/discovery"
	template     = "lt"
	profile      = "nodes"
)

// world is an account with two secondary networks, before the first node.
type world struct {
	*account.Account
	server   *cloud.Server
	config   aws.Config
	networks []*v1alpha1.SecondaryNetwork
	claims   int
}

// newWorld returns a world whose account is stored in a directory. Its instances boot until ctx
// ends.
func newWorld(ctx context.Context, dir string) (*world, error) {
	w := &world{}
	settings := account.Settings{Region: "us-west-2", Zones: []string{"us-west-2a", "us-west-2b"}, Cluster: cluster, Speed: 1}
	var err error
	if w.Account, err = account.Open(filepath.Join(dir, "aws.json"), settings, time.Now); err != nil {
		return nil, err
	}
	w.server = cloud.NewServer(w.Account, service.Cluster{})
	w.config = aws.Config{
		Region: settings.Region, HTTPClient: endpoint{w.server},
		Credentials: credentials.NewStaticCredentialsProvider("AKIABENCH", "secret", ""),
	}
	if err := w.PutProfile(account.InstanceProfile{Name: profile, Path: "/", Role: "KarpenterNodeRole-" + cluster}); err != nil {
		return nil, err
	}
	if _, err := w.PutTemplate(account.LaunchTemplate{Name: template, Data: account.TemplateData{Profile: profile}}); err != nil {
		return nil, err
	}
	for i, name := range []string{"n4", "n6"} {
		n := &v1alpha1.SecondaryNetwork{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for j, zone := range settings.Zones {
			subnet, err := w.AddSubnet(zone, fmt.Sprintf("10.0.%d.0/23", 64+8*i+2*j), account.Tags{"Name": name + zone})
			if err != nil {
				return nil, err
			}
			n.Spec.Zones = append(n.Spec.Zones, v1alpha1.SecondaryNetworkZone{
				Zone: zone, Subnet: subnet.ID, SecurityGroups: []string{w.ListSecurityGroups(nil)[0].ID},
			})
		}
		w.networks = append(w.networks, n)
	}
	go w.runAccount(ctx)
	return w, nil
}

// runAccount advances the account as time passes, and marks instances as registered.
func (w *world) runAccount(ctx context.Context) {
	for ctx.Err() == nil {
		changed := w.WatchChange()
		due, err := w.Advance()
		for _, i := range due {
			err = errors.Join(err, w.UpdateInstance(i.ID, func(i *account.Instance) {
				i.Registered, i.Left = true, i.State == account.Terminated
			}))
		}
		if err != nil {
			panic(err) // the account's file cannot be written
		}
		wait := time.Hour
		if next := w.FindNextDue(); !next.IsZero() {
			wait = max(0, time.Until(next))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// launchInstance starts an instance, as Karpenter does for a NodeClaim.
func (w *world) launchInstance() (attach.Claim, error) {
	subnet := w.ListSubnets(account.Filters{"tag:" + group: {cluster}})[w.claims%2]
	started, refused, err := w.Launch(account.Order{
		Offers:   []account.Offer{{Template: template, Type: instanceType, Subnet: subnet.ID, Zone: subnet.Zone}},
		Capacity: account.OnDemand, Count: 1,
	})
	if err != nil || len(started) != 1 {
		return attach.Claim{}, errors.Join(err, fmt.Errorf("launch: %+v", refused))
	}
	w.claims++
	return attach.Claim{
		Name: fmt.Sprintf("telco-%d", w.claims), UID: fmt.Sprintf("u%d", w.claims), Pool: pool,
		Zone: subnet.Zone, Instance: started[0].IDs[0], InstanceType: instanceType,
	}, nil
}

// buildDesired returns the desired interfaces of a cluster with these NodeClaims.
func (w *world) buildDesired(claims []attach.Claim) interfaces.DesiredState {
	return interfaces.DesiredState{
		Cluster: cluster, Networks: w.networks, Claims: claims,
		Pools: []attach.Pool{{Name: pool, Networks: []string{w.networks[0].Name, w.networks[1].Name}}},
	}
}

// isComplete reports whether an instance has an interface in each network that is attached, has
// no check of source and destination, and is deleted with the instance.
func (w *world) isComplete(instance string) bool {
	count := 0
	for _, n := range w.ListAllInterfaces() {
		t := n.Attachment
		if t != nil && t.Instance == instance && t.DeviceIndex > 0 && t.Status(time.Now()) == "attached" &&
			t.DeleteOnTermination && !n.SourceDestCheck {
			count++
		}
	}
	return count == len(w.networks)
}

// countLoose counts interfaces that are not attached.
func (w *world) countLoose() (count int) {
	for _, n := range w.ListAllInterfaces() {
		if n.Attachment == nil {
			count++
		}
	}
	return count
}

// endpoint passes calls to the account without a network, because real connections do not work
// in simulated time. Half of the answer's time passes before the call, half after it.
type endpoint struct{ server http.Handler }

// Do implements aws.HTTPClient.
func (e endpoint) Do(r *http.Request) (*http.Response, error) {
	time.Sleep(answer / 2)
	if r.Body == nil {
		r.Body = http.NoBody
	}
	recorder := httptest.NewRecorder()
	e.server.ServeHTTP(recorder, r)
	time.Sleep(answer / 2)
	return recorder.Result(), nil
}
