package catalog_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"croft.dev/croft/internal/diagnose/catalog"
)

// means is the way in which tests produce the symptom of a row.
type means int

const (
	// produced is for a row that the real components of a sandbox produce.
	produced means = iota
	// recorded is for a row with a text from the source code of a component that does not run
	// in tests.
	recorded
	// unproduced is for a row that cannot be produced in a test.
	unproduced
)

// coverage has, for each row, the tests that produce it, or the reason why no test does.
var coverage = map[string]struct {
	means means
	how   string
}{
	"quota-exceeded":             {produced, "internal/test/e2e TestWhy/quota"},
	"quota-share":                {produced, "internal/operate/controller/tenant/quota TestQuota"},
	"quota-reserved":             {produced, "internal/test/e2e TestWhy/quota-reserved"},
	"quota-unstated":             {produced, "internal/test/e2e TestWhy/admission/quota-unstated"},
	"limit-range":                {produced, "internal/test/e2e TestWhy/admission/limit-range"},
	"policy-refused":             {produced, "internal/test/e2e TestWhy/policy"},
	"pod-security":               {produced, "internal/test/e2e TestWhy/admission/pod-security"},
	"webhook-fails":              {produced, "internal/test/e2e TestWhy/admission/webhook-fails"},
	"placement-missing":          {produced, "internal/test/e2e TestWhy/placement"},
	"old-crds":                   {produced, "internal/diagnose/doctor TestChecks/Kinds"},
	"flux-source":                {recorded, "a sandbox has no source-controller; internal/diagnose/why TestKustomization evaluates its conditions"},
	"flux-rights":                {produced, "internal/operate/controller/tenant TestFlux"},
	"flux-kind-unknown":          {produced, "internal/operate/controller/tenant TestFlux"},
	"flux-outside":               {produced, "internal/operate/controller/tenant TestFlux"},
	"flux-build":                 {produced, "internal/operate/controller/tenant TestFlux"},
	"flux-build-waits":           {produced, "internal/operate/controller/tenant TestFlux"},
	"flux-artifact":              {produced, "internal/operate/controller/tenant TestFlux"},
	"flux-unhealthy":             {produced, "internal/operate/controller/tenant TestFlux"},
	"flux-refused":               {produced, "internal/operate/controller/tenant TestFlux"},
	"certificate-issuer":         {recorded, "a sandbox has no cert-manager; internal/diagnose/why TestCertificate evaluates its conditions"},
	"certificate-challenge":      {recorded, "a sandbox has no cert-manager; internal/diagnose/why TestCertificate evaluates its conditions"},
	"certificate-failed":         {recorded, "a sandbox has no cert-manager; internal/diagnose/why TestCertificate evaluates its conditions"},
	"taint-not-tolerated":        {produced, "internal/test/e2e TestWhy/placement"},
	"label-unknown":              {produced, "internal/test/e2e TestWhy/asked-too-much/label-unknown"},
	"requirement-unmet":          {produced, "internal/test/e2e TestWhy/asked-too-much/requirement-unmet"},
	"limits-exceeded":            {produced, "internal/test/e2e TestWhy/limits"},
	"no-instance-type":           {produced, "internal/test/e2e TestWhy/asked-too-much/no-instance-type"},
	"volume-zone":                {produced, "internal/test/e2e TestWhy/volume-zone"},
	"claim-unbound":              {produced, "internal/test/e2e TestWhy/asked-too-much/claim-unbound"},
	"anti-affinity-of-others":    {produced, "internal/test/e2e TestWhy/anti-affinity"},
	"affinity-unmet":             {produced, "internal/test/e2e TestWhy/asked-too-much/affinity-unmet"},
	"provisioning-held":          {produced, "internal/test/e2e TestWhyOnAWS/instance-profile, on a simulated account"},
	"no-pool":                    {produced, "internal/test/e2e TestWhy/node-class"},
	"node-class-not-found":       {produced, "internal/test/e2e TestWhy/node-class"},
	"node-class-unknown":         {produced, "internal/test/e2e TestWhy/node-class-unknown"},
	"node-class-terminating":     {produced, "internal/test/e2e TestWhy/node-class-terminating"},
	"pool-invalid":               {recorded, "text of Karpenter v1.14; its CRD's own validation comes first in a sandbox"},
	"subnets-not-found":          {produced, "internal/test/e2e TestWhyOnAWS/class, on a simulated account"},
	"security-groups-not-found":  {produced, "internal/test/e2e TestWhyOnAWS/class, on a simulated account"},
	"amis-not-found":             {produced, "internal/test/e2e TestWhyOnAWS/class, on a simulated account"},
	"dry-run-denied":             {produced, "internal/test/e2e TestWhyOnAWS/authorization/unwired, on a simulated account"},
	"class-unresolved":           {recorded, "text of Karpenter v1.14"},
	"tags-invalid":               {recorded, "text of the AWS provider v1.14"},
	"cluster-cidr":               {recorded, "text of the AWS provider v1.14"},
	"unauthorized-operation":     {produced, "internal/test/e2e TestWhyOnAWS/authorization/unwired, on a simulated account"},
	"explicit-deny":              {produced, "internal/test/e2e TestWhyOnAWS/authorization/denied, on a simulated account"},
	"pass-role":                  {produced, "internal/test/e2e TestWhyOnAWS/authorization/pass-role, on a simulated account"},
	"role-not-found":             {produced, "internal/test/e2e TestWhyOnAWS/class, on a simulated account"},
	"instance-profile-name":      {produced, "internal/test/e2e TestWhyOnAWS/instance-profile, on a simulated account"},
	"spot-service-linked-role":   {produced, "internal/test/e2e TestWhyOnAWS/launch/unlinked, on a simulated account"},
	"sts-unreachable":            {recorded, "text of the AWS SDK, versions 1 and 2; a sandbox's Karpenter has credentials and does not request them from STS"},
	"insufficient-capacity":      {produced, "internal/test/e2e TestWhyOnAWS/launch/scarce, on a simulated account"},
	"account-quota":              {produced, "internal/test/e2e TestWhyOnAWS/launch/counted, on a simulated account"},
	"subnet-full":                {produced, "internal/test/e2e TestWhyOnAWS/subnet-full, on a simulated account"},
	"network-mismatch":           {recorded, "text of the AWS provider v1.14"},
	"ends-at-once":               {recorded, "text of EC2; Karpenter reports none of it, so that only the instance shows it"},
	"launch-failed":              {recorded, "text of the AWS provider v1.14"},
	"not-registered":             {produced, "internal/test/e2e TestWhy/not-registered: kwok delays the node"},
	"unregistered-taint-missing": {produced, "internal/test/e2e TestWhy/unregistered-taint-missing: a policy of the test removes the taint of kwok's node"},
	"startup-taint":              {produced, "internal/test/e2e TestWhy/startup-taint"},
	"networks-pending":           {produced, "internal/diagnose/why TestNetworksAwaited; internal/test/e2e TestAWSNetworks"},
	"undeclared-taint":           {produced, "internal/test/e2e TestDoctor/undeclared-taint"},
	"cni-not-initialized":        {produced, "internal/test/e2e TestWhy/without-kubelet: the node's condition is written as kubelet writes it"},
	"resource-not-registered":    {recorded, "text of Karpenter v1.14; kwok's nodes have no devices"},
	"pod-address":                {recorded, "text of the Amazon VPC CNI; kwok's nodes have no network"},
	"network-range-full":         {produced, "internal/test/e2e TestMultus/NoAddressLeft, by the real whereabouts; internal/diagnose/why TestRangeFull"},
	"image-pull":                 {produced, "internal/test/e2e TestWhy/without-kubelet: the status is written as kubelet writes it"},
	"container-config":           {recorded, "text of kubelet v1.36; kwok runs no containers"},
	"command-not-run":            {recorded, "text of kubelet v1.36 and runc; kwok runs no containers"},
	"out-of-memory":              {recorded, "text of kubelet v1.36; internal/diagnose/why TestContainers reads its status"},
	"container-killed":           {recorded, "status of kubelet v1.36; internal/diagnose/why TestContainers reads it"},
	"crash-loop":                 {produced, "internal/test/e2e TestWhy/job: the pod's status is written as kubelet writes it"},
	"probe-fails":                {recorded, "text of kubelet v1.36; internal/diagnose/why TestContainers reads its events"},
	"pod-evicted":                {recorded, "text of kubelet v1.36; internal/diagnose/why TestFailedPods reads its status"},
	"pod-disrupted":              {recorded, "reasons of Kubernetes v1.36; internal/diagnose/why TestFailedPods reads them"},
	"pod-not-taken":              {recorded, "reasons of kubelet v1.36; internal/diagnose/why TestFailedPods reads them"},
	"node-unreachable":           {recorded, "text of the node lifecycle controller v1.36"},
	"rollout-stuck":              {produced, "internal/test/e2e TestWhy/rollout"},
	"job-deadline":               {produced, "internal/test/e2e TestWhy/job"},
	"job-failed":                 {produced, "internal/test/e2e TestWhy/job"},
	"schedule-missed":            {recorded, "text of kube-controller-manager v1.36; internal/diagnose/why TestCronJobs reads it"},
	"node-held":                  {produced, "internal/test/e2e TestWhy/held and TestDoctor/departures"},
	"budgets-overlap":            {produced, "internal/test/e2e TestWhy/budgets-overlap"},
	"budget-never-allows":        {produced, "internal/test/e2e TestWhy/held"},
	"budget-uncounted":           {produced, "internal/test/e2e TestWhy/budget-uncounted"},
	"finalizer-held":             {produced, "internal/test/e2e TestWhy/deletion"},
	"deletion-waits":             {produced, "internal/test/e2e TestWhy/deletion"},
	"api-unavailable":            {produced, "internal/test/e2e TestWhy/deletion"},
	"wrong-pool":                 {produced, "internal/test/e2e TestMove"},
	"tenant-load":                {produced, "internal/diagnose/doctor TestChecks/Load"},
	"daemonset-left-out":         {produced, "internal/test/e2e TestDoctor/daemonset"},
	"pool-overlaps":              {produced, "internal/test/e2e TestDoctor/overlap"},
	"pool-full":                  {produced, "internal/test/e2e TestDoctor/limits"},
	"node-outdated":              {produced, "internal/test/e2e TestDoctor/departures"},
	"foreign-mutation":           {produced, "internal/diagnose/doctor TestChecks/Others"},
	"flux-unlocked":              {unproduced, "a sandbox has no Deployments of Flux; unit tests cover the check"},
	"flux-shared-key":            {unproduced, "a sandbox has no Deployments of Flux; unit tests cover the check"},
	"unknown-addon":              {unproduced, "a sandbox has known add-ons only; unit tests cover the check"},
	"solver-service":             {unproduced, "a sandbox has no cert-manager; unit tests cover the check"},
	"engine-not-ready":           {produced, "internal/diagnose/doctor TestEngine"},
	"version-too-old":            {unproduced, "a sandbox has one version of Kubernetes; unit tests cover the check"},
}

// TestCoverage fails if a row has no entry in coverage, or if a test that an entry names does not
// exist.
func TestCoverage(t *testing.T) {
	name := regexp.MustCompile(`(internal/[\w/]+) (Test\w+)((?:/[\w-]+)*)`)
	for id := range coverage {
		if catalog.FindRow(id) == nil {
			t.Errorf("there is no row %s", id)
		}
	}
	for _, row := range catalog.Rows() {
		covered, ok := coverage[row.ID]
		if !ok {
			t.Errorf("%s has no entry in coverage", row.ID)
			continue
		}
		named := name.FindAllStringSubmatch(covered.how, -1)
		if covered.means == produced && named == nil {
			t.Errorf("%s names no test: %s", row.ID, covered.how)
		}
		for _, m := range named {
			source := readTests(t, "../../../"+m[1])
			if !strings.Contains(source, "func "+m[2]+"(") {
				t.Errorf("%s: %s has no %s", row.ID, m[1], m[2])
			}
			for sub := range strings.SplitSeq(strings.TrimPrefix(m[3], "/"), "/") {
				if sub != "" && !strings.Contains(source, `"`+sub+`"`) {
					t.Errorf("%s: %s has no %s/%s", row.ID, m[1], m[2], sub)
				}
			}
		}
	}
}

// readTests returns the source of a package's tests.
func readTests(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(content)
	}
	return all.String()
}
