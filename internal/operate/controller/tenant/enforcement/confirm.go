package enforcement

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
)

const (
	// usualLag is the time until every API server of a healthy cluster has a change:
	// 16 to 223 ms were measured.
	usualLag = 500 * time.Millisecond
	// lagInterval is the time between two requests within usualLag.
	lagInterval = 50 * time.Millisecond
)

// errBehind is the error of an API server with an older version of a namespace.
var errBehind = errors.New("still evaluates the previous rules")

// errSilent is the error of an API server that does not answer. It may be frozen, and later
// decide the requests that it has received by previous rules.
var errSilent = errors.New("until it does, or is no longer listed, it may evaluate previous rules")

// confirm returns why an API server is not known to evaluate the tenant's current rules;
// "" if all do. Clusters with one API server need no requests.
func (s *Servers) confirm(ctx context.Context, platform *estate.Platform, tenant *estate.Tenant) string {
	servers, err := s.list(ctx)
	switch {
	case err != nil:
		return err.Error()
	case len(servers) == 0 || s.areUnreachable():
		return ""
	}
	versions, err := s.readVersions(ctx, tenant)
	if err != nil {
		return err.Error()
	}
	answers := make([]error, len(servers))
	var all sync.WaitGroup
	for i, server := range servers {
		all.Go(func() { answers[i] = server.confirm(ctx, platform, tenant, versions) })
	}
	all.Wait()
	var why string
	answered := false
	for i, err := range answers {
		answered = answered || !errors.Is(err, errSilent)
		if err != nil && why == "" {
			why = fmt.Sprintf("API server %s %v", servers[i].address, err)
		}
	}
	if s.recordAnswer(answered) {
		log.FromContext(ctx).Info("no API server answers at its own address: one of them confirms rules for all", "error", why)
		return ""
	}
	return why
}

// readVersions returns the resource versions of the tenant's namespaces, which contain their rules.
func (s *Servers) readVersions(ctx context.Context, tenant *estate.Tenant) (map[string]string, error) {
	all := make(map[string]string, len(tenant.Namespaces))
	for _, name := range tenant.Namespaces {
		namespace := &corev1.Namespace{}
		if err := s.live.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
			return nil, fmt.Errorf("read namespace %s: %w", name, err)
		}
		all[name] = namespace.ResourceVersion
	}
	return all, nil
}

// confirm returns an error unless the API server evaluates these versions of the tenant's
// namespaces, and the policies.
func (s server) confirm(ctx context.Context, platform *estate.Platform, tenant *estate.Tenant, versions map[string]string) error {
	for _, namespace := range tenant.Namespaces {
		var behind error
		_ = wait.PollUntilContextTimeout(ctx, lagInterval, usualLag, true, func(context.Context) (bool, error) {
			asks := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: install.RevisionProbe}}
			// Not the poll's context, which would end a request early.
			behind = compareVersion(s.client.Create(ctx, asks, client.DryRunAll), namespace, versions[namespace])
			return !errors.Is(behind, errBehind), nil
		})
		if behind != nil {
			return behind
		}
		if why := explainUnrefused(ctx, s.client, platform, tenant, namespace); why != "" {
			return fmt.Errorf("is not ready for namespace %s: %s", namespace, why)
		}
	}
	return nil
}

// compareVersion returns an error unless an API server's answer to a version probe contains the
// expected version of the namespace, or a later one.
func compareVersion(answer error, namespace, expected string) error {
	if answer == nil {
		return fmt.Errorf("does not report its version of namespace %s: the policy %s is missing, or is an older croft's: run croft install or helm upgrade again", namespace, install.RevisionPolicy)
	}
	var status apierrors.APIStatus
	if !errors.As(answer, &status) || apierrors.IsUnauthorized(answer) {
		return fmt.Errorf("does not answer (%w): %w", omitPorts(answer), errSilent)
	}
	if !attack.ByPolicy(install.RevisionPolicy, install.RevisionRule).IsRefusal(answer) {
		return fmt.Errorf("does not report its version of namespace %s: %w", namespace, answer)
	}
	_, version, _ := strings.Cut(answer.Error(), admissionpolicy.RefusalPrefix(install.RevisionRule))
	order, err := resourceversion.CompareResourceVersion(version, expected)
	switch {
	case err != nil:
		return fmt.Errorf("reports a version of namespace %s that cannot be compared: %w", namespace, err)
	case order < 0:
		return fmt.Errorf("%w of namespace %s (version %s, and %s is the current one)", errBehind, namespace, version, expected)
	}
	return nil
}

// omitPorts returns an error without the ports of its connection, which differ in each message.
func omitPorts(err error) error {
	var connection *net.OpError
	var request *url.Error
	switch {
	case errors.As(err, &request) && request.Timeout():
		return fmt.Errorf("timeout after %s", answerWithin)
	case errors.As(err, &connection):
		return connection.Err
	case request != nil:
		return request.Err
	default:
		return err
	}
}
