package why_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/diagnose/why"
	"croft.dev/croft/internal/observe/certmanager"
)

type fields = map[string]any

// newIssued returns an object of cert-manager. The UID in its owner reference equals the
// owner's name.
func newIssued(kind schema.GroupVersionKind, name, owner string, spec, status fields) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: fields{"spec": spec, "status": status}}
	o.SetGroupVersionKind(kind)
	o.SetNamespace("shop")
	o.SetName(name)
	o.SetUID(types.UID(name))
	if owner != "" {
		yes := true
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Any", Name: owner, UID: types.UID(owner), Controller: &yes}})
	}
	return o
}

// makeStatus returns a status with conditions: type, status, reason and message.
func makeStatus(conditions ...[4]string) fields {
	var all []any
	for _, c := range conditions {
		all = append(all, fields{"type": c[0], "status": c[1], "reason": c[2], "message": c[3]})
	}
	return fields{"conditions": all}
}

func newCertificate(issuer string, conditions ...[4]string) *unstructured.Unstructured {
	kind, name, _ := strings.Cut(issuer, "/")
	return newIssued(certmanager.Certificate, "web", "", fields{"issuerRef": fields{"kind": kind, "name": name}}, makeStatus(conditions...))
}

func makeHTTP01(settings fields) fields { return fields{"http01": fields{"ingress": settings}} }

// TestCertificate evaluates objects of cert-manager. It needs no cluster: a sandbox has no
// cert-manager.
func TestCertificate(t *testing.T) {
	clusterIssuer := newIssued(certmanager.ClusterIssuer, "letsencrypt", "", fields{"acme": fields{"solvers": []any{makeHTTP01(fields{})}}}, makeStatus([4]string{"Ready", "True", "ACMEAccountRegistered", ""}))
	waits := newCertificate("ClusterIssuer/letsencrypt", [4]string{"Ready", "False", "DoesNotExist", "Issuing certificate as Secret does not exist"}, [4]string{"Issuing", "True", "DoesNotExist", "Issuing certificate as Secret does not exist"})
	request := newIssued(certmanager.Request, "web-1", "web", nil, makeStatus([4]string{"Approved", "True", "cert-manager.io", ""}, [4]string{"Ready", "False", "Pending", "Waiting on certificate issuance from order shop/web-1-7: \"pending\""}))
	order := newIssued(certmanager.Order, "web-1-7", "web-1", nil, fields{"state": "pending"})
	challenge := func(solver, status fields) []unstructured.Unstructured {
		return []unstructured.Unstructured{*newIssued(certmanager.Challenge, "web-1-7-9", "web-1-7", fields{"dnsName": "shop.example.org", "solver": solver}, status)}
	}
	clusterIP := makeHTTP01(fields{"serviceType": "ClusterIP"})
	const refused = `services "cm-acme-http-solver-x" is forbidden: ValidatingAdmissionPolicy 'croft-services' with binding 'croft-services' denied request: [service-type] spec.type: NodePort is not allowed`
	rules := &v1alpha1.TenantRules{Spec: v1alpha1.TenantRulesSpec{PolicySettings: v1alpha1.PolicySettings{ServiceTypes: []corev1.ServiceType{"ClusterIP"}}}}
	for name, c := range map[string]struct {
		object   *unstructured.Unstructured
		around   why.Issuance
		hidden   []string
		verdict  why.Verdict
		first    string
		wantText []string
	}{
		"issued":              {object: newCertificate("Issuer/own", [4]string{"Ready", "True", "Ready", "Certificate is up to date and has not expired"}), verdict: why.Good, wantText: []string{"is issued, and nothing is wrong"}},
		"not looked at":       {object: newCertificate("ClusterIssuer/letsencrypt"), around: why.Issuance{Issuer: clusterIssuer}, verdict: why.Waiting, wantText: []string{"does it run?"}},
		"without its issuer":  {object: waits, verdict: why.Bad, first: "certificate-issuer", wantText: []string{"there is no ClusterIssuer letsencrypt"}},
		"of a hidden issuer":  {object: waits, hidden: []string{"clusterissuer"}, verdict: why.Waiting, wantText: []string{"clusterissuer/letsencrypt: you may not read this"}},
		"of another's issuer": {object: newIssued(certmanager.Certificate, "web", "", fields{"issuerRef": fields{"group": "awspca.cert-manager.io", "kind": "AWSPCAIssuer", "name": "a"}}, makeStatus([4]string{"Ready", "False", "DoesNotExist", "no"})), verdict: why.Waiting},
		"of an issuer that fails": {
			object: waits, around: why.Issuance{Issuer: newIssued(certmanager.ClusterIssuer, "letsencrypt", "", nil, makeStatus([4]string{"Ready", "False", "ErrRegisterACMEAccount", "Failed to register ACME account"}))},
			verdict: why.Bad, first: "certificate-issuer", wantText: []string{"Failed to register ACME account"},
		},
		"whose solver's Service is a NodePort, without an event": {
			object: waits, around: why.Issuance{Issuer: clusterIssuer, Request: request, Order: order, Challenges: challenge(makeHTTP01(fields{}), fields{"state": "pending", "processing": true})},
			verdict: why.Bad, first: "solver-service",
			wantText: []string{"challenge/web-1-7-9: its solver's Service is of type NodePort", "serviceType: ClusterIP", "in ClusterIssuer letsencrypt", "kubectl get clusterissuer letsencrypt -o yaml", "platform"},
		},
		"whose solver's Service was refused": {
			object: waits, around: why.Issuance{Issuer: clusterIssuer, Request: request, Order: order, Challenges: challenge(makeHTTP01(fields{}), fields{"state": "pending", "reason": refused})},
			verdict: why.Bad, first: "solver-service", wantText: []string{"NodePort is not allowed", "serviceType: ClusterIP"},
		},
		"of the team's own issuer": {
			object: newCertificate("Issuer/own", [4]string{"Ready", "False", "DoesNotExist", "no"}), around: why.Issuance{
				Issuer: newIssued(schema.GroupVersionKind{Group: certmanager.Group, Version: "v1", Kind: "Issuer"}, "own", "", nil, makeStatus([4]string{"Ready", "True", "", ""})), Request: request, Order: order, Challenges: challenge(makeHTTP01(fields{}), nil)},
			verdict: why.Bad, first: "solver-service", wantText: []string{"in Issuer own", "kubectl get issuer own -o yaml -n shop", "team"},
		},
		"whose challenges are hidden": {
			object: waits, around: why.Issuance{Issuer: clusterIssuer, Request: request}, hidden: []string{"order"}, verdict: why.Bad, first: "solver-service",
			wantText: []string{"certificate/web: its solver's Service is of type NodePort"},
		},
		"whose challenges and issuer are hidden": {object: waits, around: why.Issuance{Request: request}, hidden: []string{"order", "clusterissuer"}, verdict: why.Waiting, wantText: []string{"croft why certificate/web -n shop"}},
		"refused for another reason": {
			object: waits, around: why.Issuance{Issuer: clusterIssuer, Request: request, Order: order, Challenges: challenge(clusterIP, fields{"state": "pending", "reason": `pods "cm-acme-http-solver-x" is forbidden: violates PodSecurity "restricted:latest": x`})},
			verdict: why.Bad, first: "pod-security",
		},
		"presented, and not seen from outside": {
			object: waits, around: why.Issuance{Issuer: clusterIssuer, Request: request, Order: order, Challenges: challenge(makeHTTP01(fields{}), fields{"state": "pending", "presented": true, "reason": "Waiting for HTTP-01 challenge propagation: wrong status code '404', expected '200'"})},
			verdict: why.Waiting, wantText: []string{"wrong status code '404'", "the domain must lead to the ingress controller"},
		},
		"whose challenge failed": {
			object: waits, around: why.Issuance{Issuer: clusterIssuer, Request: request, Order: newIssued(certmanager.Order, "web-1-7", "web-1", nil, fields{"state": "invalid"}), Challenges: challenge(clusterIP, fields{"state": "invalid", "reason": "Error accepting authorization: acme: authorization error for shop.example.org: 403"})},
			verdict: why.Bad, first: "certificate-challenge", wantText: []string{"shop.example.org: invalid: Error accepting authorization", "order/web-1-7: invalid"},
		},
		"whose challenge is answered": {
			object: waits, around: why.Issuance{Issuer: clusterIssuer, Request: request, Order: order, Challenges: challenge(clusterIP, fields{"state": "valid", "reason": "Successfully authorized domain"})},
			verdict: why.Waiting, wantText: []string{"shop.example.org is verified"},
		},
		"whose request is denied": {
			object: waits, around: why.Issuance{Issuer: clusterIssuer, Request: newIssued(certmanager.Request, "web-1", "web", nil, makeStatus([4]string{"Denied", "True", "policy", "no"}, [4]string{"Ready", "False", "Denied", "The CertificateRequest was denied by an approval controller"}))},
			verdict: why.Bad, first: "certificate-failed", wantText: []string{"certificaterequest/web-1", "denied by an approval controller"},
		},
		"that failed, and waits for the next attempt": {
			object:  newCertificate("ClusterIssuer/letsencrypt", [4]string{"Ready", "True", "Ready", ""}, [4]string{"Issuing", "False", "Failed", "The certificate request has failed to complete and will be retried: rate limited"}),
			around:  why.Issuance{Issuer: clusterIssuer},
			verdict: why.Bad, first: "certificate-failed", wantText: []string{"is issued, but not renewed", "rate limited", "cmctl renew"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			story := why.ExplainSnapshot(&why.Snapshot{
				Target: why.Target{Kind: "certificate", Namespace: "shop", Name: "web"}, Rules: rules,
				Object: c.object, Around: why.Around{Issuance: c.around}, Hidden: c.hidden,
			})
			text := story.Summary
			for _, step := range story.Steps {
				text += "\n" + step.Object + ": " + step.Observation
				if step.Verdict == why.Waiting && step.Finding != nil {
					text += "\n" + step.Finding.Fix
				}
			}
			first := ""
			if story.First != nil {
				first = story.First.ID
				text += "\n" + story.First.Cause + "\n" + story.First.Fix + "\n" + story.First.Run + "\n" + string(story.First.Who)
			}
			if story.Verdict != c.verdict || first != c.first {
				t.Errorf("%s, first %q; want %s, %q:\n%s", story.Verdict, first, c.verdict, c.first, text)
			}
			for _, want := range c.wantText {
				if !strings.Contains(text, want) {
					t.Errorf("want %q in:\n%s", want, text)
				}
			}
		})
	}
}

// TestGatherCertificate follows owner references, takes the newest of several objects, and
// leaves out kinds that the cluster does not serve.
func TestGatherCertificate(t *testing.T) {
	old := newIssued(certmanager.Request, "web-1", "web", nil, nil)
	young := newIssued(certmanager.Request, "web-2", "web", nil, nil)
	young.SetCreationTimestamp(metav1.NewTime(time.Unix(2000, 0)))
	old.SetCreationTimestamp(metav1.NewTime(time.Unix(1000, 0)))
	issuer := newIssued(certmanager.ClusterIssuer, "letsencrypt", "", nil, nil)
	issuer.SetNamespace("")
	objects := []client.Object{
		newCertificate("ClusterIssuer/letsencrypt"), issuer, old, young, newIssued(certmanager.Request, "else", "another", nil, nil),
		newIssued(certmanager.Order, "o1", "web-1", nil, nil), newIssued(certmanager.Order, "o2", "web-2", nil, nil),
		newIssued(certmanager.Challenge, "c1", "o1", nil, nil), newIssued(certmanager.Challenge, "c2", "o2", nil, nil), newIssued(certmanager.Challenge, "c3", "o2", nil, nil),
	}
	c := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).Build()
	got, err := why.Gather(t.Context(), c, why.Target{Kind: "certificate", Namespace: "shop", Name: "web"})
	if err != nil {
		t.Fatal(err)
	}
	all := got.Around.Issuance
	if all.Issuer == nil || all.Request == nil || all.Request.GetName() != "web-2" || all.Order == nil || all.Order.GetName() != "o2" || len(all.Challenges) != 2 {
		t.Errorf("%+v", all)
	}
}
