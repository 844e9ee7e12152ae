package migrate_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/adoption/migrate"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// buildTree is the hierarchy acme, with the full namespace acme-web and the subnamespace acme-db, whose child is acme-db-test.
// A mutator assigns a pool to namespaces.
func buildTree(namespaces string) string {
	return buildDedicatedPool("jobs") + buildDedicatedPool("apps") + buildSelectorAssign("namespaces: ["+namespaces+"]", "node-pool: jobs") + buildNamespace("acme", "") + buildNamespace("acme-web", "stage: prod") + buildNamespace("acme-db", "stage: test") + buildNamespace("acme-db-test", "stage: test") +
		buildHierarchy("acme-web", "parent: acme") + buildHierarchy("acme-db-test", "parent: acme-db") +
		"---\n{apiVersion: hnc.x-k8s.io/v1alpha2, kind: SubnamespaceAnchor, metadata: {name: acme-db, namespace: acme}}\n"
}

func buildHierarchy(namespace, spec string) string {
	return "\n---\n{apiVersion: hnc.x-k8s.io/v1alpha2, kind: HierarchyConfiguration, metadata: {name: hierarchy, namespace: " + namespace + "}, spec: {" + spec + "}}\n"
}

// buildHNCConfiguration returns an HNCConfiguration with the mode of a resource.
func buildHNCConfiguration(resource, mode string) string {
	return "---\n{apiVersion: hnc.x-k8s.io/v1alpha2, kind: HNCConfiguration, metadata: {name: config}, spec: {resources: [{resource: " + resource + ", mode: " + mode + "}]}}\n"
}

// addMetadata returns a manifest with more metadata, as a document.
func addMetadata(manifest, metadata string) string {
	return "---\n" + strings.Replace(manifest, "{name: a", "{name: a, "+metadata, 1) + "\n"
}

// TestTrees expects tenants for HNC's trees.
func TestTrees(t *testing.T) {
	const whole = `"acme":{"namespaces":["acme","acme-db","acme-web","acme-db-test"],"pool":"jobs"}`
	labelled := "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: beta, labels: {acme.tree.hnc.x-k8s.io/depth: \"1\", beta.tree.hnc.x-k8s.io/depth: \"0\"}}}\n"
	quota := func(namespace string) string {
		return "---\n{apiVersion: hnc.x-k8s.io/v1alpha2, kind: HierarchicalResourceQuota, metadata: {name: a, namespace: " + namespace + "}, spec: {hard: {pods: 7}}}\n"
	}
	for name, r := range map[string]row{
		"the pool of the root": {read: buildTree("acme"), gives: []string{whole}, findings: []want{
			{source.Changed, "HierarchyConfiguration/acme-web/hierarchy spec.parent", "share its people"}, {source.Changed, "SubnamespaceAnchor/acme/acme-db metadata.name", "selfService"},
			{source.Changed, "SubnamespaceAnchor/acme/acme-db metadata.namespace", "share its people"},
		}},
		"a pool of its own": {read: buildTree("acme, acme-db"), gives: []string{`"acme":{"namespaces":["acme","acme-web"],"pool":"jobs"}`, `"acme-db":{"namespaces":["acme-db","acme-db-test"],"pool":"jobs"}`}},
		"no pool":           {read: buildTree("other"), problems: []string{"does not name a pool for the pods of tenant acme"}},
		"a pool below":      {read: buildTree("acme-db"), gives: []string{`"acme-db":{"namespaces":["acme-db","acme-db-test"],"pool":"jobs"}`}, not: []string{`"acme":`}, findings: []want{{source.Other, "HierarchyConfiguration/acme-web/hierarchy ", "belongs to no tenant"}}},
		"separate tenants":  {read: buildTree("acme, acme-web"), gives: []string{`"acme-web":{"pool":"jobs"}`}, findings: []want{{source.Changed, "HierarchyConfiguration/acme-web/hierarchy spec.parent", "acme and acme-web are separate tenants"}}},
		"by labels":         {read: buildTree("acme") + labelled, gives: []string{`"acme-web","beta","acme-db-test"`}},
		"by an annotation":  {read: buildTree("acme") + strings.Replace(buildNamespace("beta", ""), "labels:", "annotations: {hnc.x-k8s.io/subnamespace-of: acme-web}, labels:", 1), gives: []string{`"acme-db-test","beta"`}},
		"a cycle":           {read: buildTree("acme") + buildHierarchy("acme", "parent: acme-db-test"), gives: []string{`"pool":"jobs"`}},
		"cascading":         {read: buildTree("acme") + buildHierarchy("acme", "allowCascadingDeletion: true"), gives: []string{whole}, findings: []want{{source.Changed, "spec.allowCascadingDeletion", "Retain"}}},

		"managed labels":       {read: buildTree("acme") + buildHierarchy("acme", "labels: [{key: team, value: web}], annotations: [{key: example.org/a, value: b}]"), gives: []string{`"namespace":{"annotations":{"example.org/a":"b"},"labels":{"team":"web"}}`}},
		"labels of some":       {read: buildTree("acme") + buildHierarchy("acme-db", "labels: [{key: team, value: web}]"), not: []string{`"namespace":{`}, findings: []want{{source.NotKept, "HierarchyConfiguration/acme-db/hierarchy spec.labels[0]", "all namespaces of a tenant"}}},
		"refused labels":       {read: buildTree("acme") + buildHierarchy("acme", "labels: [{key: istio-injection, value: enabled}]"), findings: []want{{source.NotKept, "spec.labels[0]", "policy of yours"}}},
		"a level":              {read: buildTree("acme") + buildHierarchy("acme", "labels: [{key: pod-security.kubernetes.io/enforce, value: restricted}]"), gives: []string{`"podSecurity":"restricted"`}},
		"a selector of nodes":  {read: buildTree("acme") + buildHierarchy("acme", "annotations: [{key: scheduler.alpha.kubernetes.io/node-selector, value: node-pool=apps}]"), problems: []string{"spec.annotations[0]: places pods, and the input lacks this annotation"}},
		"labels of an anchor":  {read: strings.Replace(buildTree("acme"), "namespace: acme}}", "namespace: acme}, spec: {labels: [{key: team, value: db}]}}", 1), findings: []want{{source.NotKept, "SubnamespaceAnchor/acme/acme-db spec.labels[0]", "all namespaces of a tenant"}}},
		"a quota of the tree":  {read: buildTree("acme") + quota("acme"), gives: []string{`"quota":{"pods":"7"}`}},
		"a quota of a subtree": {read: buildTree("acme") + quota("acme-db"), not: []string{`"quota"`}, problems: []string{"HierarchicalResourceQuota/acme-db/a: limits the namespaces acme-db-test, acme-db together"}},
		"HNC's own quota": {read: buildTree("acme") + quota("acme") + "---\n{apiVersion: v1, kind: ResourceQuota, metadata: {name: hrq.hnc.x-k8s.io, namespace: acme-db, labels: {hnc.x-k8s.io/hrq: \"true\"}}, spec: {hard: {pods: 7}}}\n",
			gives: []string{`"quota":{"pods":"7"}`}, findings: []want{{source.Other, "ResourceQuota/acme-db/hrq.hnc.x-k8s.io ", "HierarchicalResourceQuota"}}},
	} {
		r.options = demo
		t.Run(name, r.checkMapping)
	}
}

// TestPropagated expects the objects that HNC copies in croft.yaml, if all namespaces of a tenant get them.
func TestPropagated(t *testing.T) {
	const (
		written = `"objects":[{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"name":"a"}}]`
		object  = "ConfigMap/acme/a "
		limits  = "{apiVersion: v1, kind: LimitRange, metadata: {name: a}, spec: {limits: [{type: Pod, max: {cpu: 8}}]}}"
		secret  = "{apiVersion: v1, kind: Secret, metadata: {name: a}}"
		account = "{kind: ServiceAccount, name: bot, namespace: acme}"
		removed = "remove HNC first"
	)
	all := buildHNCConfiguration("configmaps", "Propagate")
	annotated := func(name, value string) string {
		return "namespace: acme, annotations: {propagate.hnc.x-k8s.io/" + name + ": '" + value + "'}"
	}
	copied := func(manifest string, namespaces ...string) string {
		text := ""
		for _, namespace := range namespaces {
			text += addMetadata(manifest, "namespace: "+namespace+", labels: {hnc.x-k8s.io/inherited-from: acme, app.kubernetes.io/managed-by: hnc.x-k8s.io}")
		}
		return text
	}
	for name, r := range map[string]row{
		"a ConfigMap":            {read: buildTree("acme") + all + addMetadata(rawConfig, "namespace: acme"), gives: []string{written}, findings: []want{{source.Changed, object, removed}, {source.Changed, "HNCConfiguration/config spec.resources[0]", "no objects of a kind"}}},
		"with its copies":        {read: buildTree("acme") + all + addMetadata(rawConfig, "namespace: acme") + copied(rawConfig, "acme-db", "acme-web", "acme-db-test"), gives: []string{written}, findings: []want{{source.Other, "ConfigMap/acme-web/a ", "HNC's copy of the object in namespace acme"}}},
		"without the original":   {read: buildTree("acme-web") + copied(rawConfig, "acme-web"), gives: []string{written}, findings: []want{{source.Changed, "ConfigMap/acme-web/a ", removed}}},
		"for two tenants":        {read: buildTree("acme-web, acme-db") + all + addMetadata(rawConfig, "namespace: acme"), gives: []string{`"acme-db":{"namespaces":["acme-db","acme-db-test"],` + written, `"acme-web":{` + written}, not: []string{"tenantDefaults"}},
		"text of parameters":     {read: buildTree("acme") + all + addMetadata(strings.Replace(rawConfig, "a: b", "a: $(tenant)", 1), "namespace: acme"), gives: []string{`{"a":"$$(tenant)"}`}},
		"in a leaf":              {read: buildTree("acme") + all + addMetadata(rawConfig, "namespace: acme-web"), not: []string{`"objects"`}, findings: []want{{source.Other, "ConfigMap/acme-web/a ", "stays as it is"}}},
		"in a subtree":           {read: buildTree("acme") + all + addMetadata(rawConfig, "namespace: acme-db"), not: []string{`"objects"`}, findings: []want{{source.NotKept, "ConfigMap/acme-db/a ", "only some namespaces of acme"}}},
		"not requested":          {read: buildTree("acme") + buildHNCConfiguration("configmaps", "AllowPropagate") + addMetadata(rawConfig, "namespace: acme"), not: []string{`"objects"`}, findings: []want{{source.Other, object, "stays as it is"}}},
		"requested":              {read: buildTree("acme") + buildHNCConfiguration("configmaps", "AllowPropagate") + addMetadata(rawConfig, annotated("all", "true")), gives: []string{written}},
		"in no mode":             {read: buildTree("acme") + buildHNCConfiguration("secrets", "Propagate") + addMetadata(rawConfig, "namespace: acme"), not: []string{`"objects"`}},
		"ignored":                {read: buildTree("acme") + buildHNCConfiguration("configmaps", "Ignore") + addMetadata(rawConfig, "namespace: acme"), not: []string{`"objects"`}, findings: []want{{source.Other, "HNCConfiguration/config spec.resources[0]", "does not copy"}}},
		"without the modes":      {read: buildTree("acme") + addMetadata(rawConfig, "namespace: acme"), not: []string{`"objects"`}},
		"with an annotation":     {read: buildTree("acme") + addMetadata(rawConfig, annotated("all", "true")), gives: []string{written}},
		"none":                   {read: buildTree("acme") + all + addMetadata(rawConfig, annotated("none", "true")), not: []string{`"objects"`}},
		"not none":               {read: buildTree("acme") + all + addMetadata(rawConfig, annotated("none", "false")), gives: []string{written}},
		"with a finalizer":       {read: buildTree("acme") + all + addMetadata(rawConfig, "namespace: acme, finalizers: [a/b]"), not: []string{`"objects"`}},
		"selected by labels":     {read: buildTree("acme, acme-web, acme-db") + all + addMetadata(rawConfig, annotated("select", "stage=test")), gives: []string{`"acme-db":{"namespaces":["acme-db","acme-db-test"],` + written}, not: []string{`"acme-web":{"objects"`}},
		"some by labels":         {read: buildTree("acme") + all + addMetadata(rawConfig, annotated("select", "stage=test")), not: []string{`"objects"`}, findings: []want{{source.NotKept, object, "only some namespaces of acme"}}},
		"an odd selector":        {read: buildTree("acme") + all + addMetadata(rawConfig, annotated("select", "a in (")), not: []string{`"objects"`}},
		"selected by a tree":     {read: buildTree("acme, acme-db") + all + addMetadata(rawConfig, annotated("treeSelect", "acme-db")), gives: []string{`"acme-db":{"namespaces":["acme-db","acme-db-test"],` + written}, not: []string{`"acme":{"namespaces":["acme","acme-web"],"objects"`}},
		"all but a tree":         {read: buildTree("acme, acme-db") + all + addMetadata(rawConfig, annotated("treeSelect", "!acme-db")), gives: []string{`"acme":{"namespaces":["acme","acme-web"],` + written}, not: []string{`"acme-db":{"namespaces":["acme-db","acme-db-test"],"objects"`}},
		"a ConfigMap of the CA":  {read: buildTree("acme") + all + strings.Replace(addMetadata(rawConfig, "namespace: acme"), "name: a,", "name: kube-root-ca.crt,", 1), not: []string{`"objects"`}},
		"an immutable ConfigMap": {read: buildTree("acme") + all + strings.Replace(addMetadata(rawConfig, "namespace: acme"), "kind: ConfigMap", "kind: ConfigMap, immutable: true", 1), not: []string{`"objects"`}, findings: []want{{source.NotKept, object, "remove immutable"}}},

		"limits of pods":       {read: buildTree("acme") + buildHNCConfiguration("limitranges", "Propagate") + addMetadata(limits, "namespace: acme") + copied(limits, "acme-web"), gives: []string{`"objects":[{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"a"},"spec":{"limits":[{"max":{"cpu":8},"type":"Pod"}]}}]`}, findings: []want{{source.Changed, "LimitRange/acme/a ", removed}, {source.Other, "LimitRange/acme-web/a ", "HNC's copy"}}},
		"limits of containers": {read: buildTree("acme") + buildHNCConfiguration("limitranges", "Propagate") + addMetadata(strings.Replace(limits, "Pod", "Container", 1), "namespace: acme"), gives: []string{`"limits":{"max":{"cpu":"8"}}`}, not: []string{`"objects"`}},
		"limits of a subtree":  {read: buildTree("acme") + buildHNCConfiguration("limitranges", "Propagate") + addMetadata(limits, "namespace: acme-db"), not: []string{`"objects"`}, findings: []want{{source.NotKept, "LimitRange/acme-db/a ", "only some namespaces"}, {source.NotKept, "LimitRange/acme-db/a spec.limits[0]", "keep this LimitRange"}}},

		"a binding of people":    {read: buildTree("acme-web") + addMetadata(formatBinding("view", "{kind: User, name: alice}"), "namespace: acme"), gives: []string{`"acme-web":{"access":[{"role":"viewer","user":"alice"}]`}, not: []string{`"objects"`}},
		"people of a leaf":       {read: buildTree("acme") + addMetadata(formatBinding("view", "{kind: User, name: alice}"), "namespace: acme-web"), not: []string{`"access"`}, findings: []want{{source.NotKept, "RoleBinding/acme-web/a subjects[0]", "in only some namespaces of acme, not in acme, acme-db, acme-db-test, and croft gives access to all"}}},
		"a binding of accounts":  {read: buildTree("acme") + addMetadata(formatBinding("edit", account), "namespace: acme"), gives: []string{`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"croft-operator"},"subjects":[{"kind":"ServiceAccount","name":"bot","namespace":"acme"}]`}, findings: []want{{source.Changed, "RoleBinding/acme/a roleRef", "delete the existing bindings"}, {source.Kept, "RoleBinding/acme/a subjects[0]", "tenants.acme.objects"}}},
		"a binding of a subtree": {read: buildTree("acme") + addMetadata(formatBinding("edit", account), "namespace: acme-db"), not: []string{`"objects"`}, findings: []want{{source.Other, "RoleBinding/acme-db/a subjects[0]", "stays as it is"}}},
		"a foreign account":      {read: buildTree("acme-web") + addMetadata(formatBinding("edit", account), "namespace: acme"), not: []string{`"objects"`}, findings: []want{{source.NotKept, "RoleBinding/acme/a ", "allow it by policy.shareWith"}}},
		"a Role":                 {read: buildTree("acme") + addMetadata("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a}, rules: []}", "namespace: acme"), findings: []want{{source.NotKept, "Role/acme/a ", "platform.roles"}}},

		"a policy of some pods": {read: buildTree("acme") + buildHNCConfiguration("networkpolicies, group: networking.k8s.io", "Propagate") + addMetadata(formatPolicy("matchLabels: {app: db}", "{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: acme-web}}}"), "namespace: acme"), gives: []string{`"objects":[{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy"`}},
		"a policy of all pods":  {read: buildTree("acme") + buildHNCConfiguration("networkpolicies, group: networking.k8s.io", "Propagate") + addMetadata(formatPolicy("", "{podSelector: {}}"), "namespace: acme"), not: []string{`"objects"`}, findings: []want{{source.Kept, "NetworkPolicy/acme/a spec", "croft's wall replaces it"}}},
		"a policy for everyone": {read: buildTree("acme") + buildHNCConfiguration("networkpolicies, group: networking.k8s.io", "Propagate") + addMetadata(formatPolicy("matchLabels: {app: db}", "{namespaceSelector: {}}"), "namespace: acme"), not: []string{`"objects"`}, findings: []want{{source.NotKept, "NetworkPolicy/acme/a ", "only the tenant's namespaces"}}},

		"a Secret":          {read: buildTree("acme") + buildHNCConfiguration("secrets", "Propagate") + addMetadata(secret, "namespace: acme") + copied(secret, "acme-web"), gives: []string{`"secrets":{"a":{}}`}, findings: []want{{source.Changed, "Secret/acme/a ", "create the Secret a in the namespace croft-secrets"}, {source.Other, "Secret/acme-web/a ", "HNC's copy"}}},
		"a quota of others": {read: buildTree("acme-web") + buildHNCConfiguration("resourcequotas", "Propagate") + addMetadata("{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}, spec: {hard: {pods: 3}}}", "namespace: acme"), findings: []want{{source.Changed, "ResourceQuota/acme/a spec.hard", "the input lacks these copies"}}},
	} {
		r.options = demo
		t.Run(name, r.checkMapping)
	}
}

// kindServer answers with objects of one kind.
type kindServer struct {
	listRecorder
	object map[string]any
}

func (s kindServer) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	kind, _ := s.object["kind"].(string)
	if served, ok := list.(*unstructured.UnstructuredList); ok && served.GetKind() == kind+"List" {
		served.Items = []unstructured.Unstructured{{Object: s.object}}
	}
	return s.listRecorder.List(ctx, list, options...)
}

// TestLiveReadsCopiedConfigMaps expects ReadCluster to read ConfigMaps only if a tool copies some.
func TestLiveReadsCopiedConfigMaps(t *testing.T) {
	for name, test := range map[string]struct {
		object string
		reads  bool
	}{
		"HNC":                {strings.TrimPrefix(buildHNCConfiguration("configmaps", "Propagate"), "---\n"), true},
		"HNC, other objects": {strings.TrimPrefix(buildHNCConfiguration("secrets", "Propagate"), "---\n"), false},
		"Capsule":            {"{apiVersion: capsule.clastix.io/v1beta2, kind: TenantResource, spec: {resources: [{namespacedItems: [{kind: ConfigMap}]}]}}", true},
		"Capsule's own":      {"{apiVersion: capsule.clastix.io/v1beta2, kind: TenantResource, spec: {resources: [{rawItems: [{kind: ConfigMap}]}]}}", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := kindServer{listRecorder{kinds: map[string]bool{}}, decodeYAML(t, []byte(test.object))}
			if _, _, err := migrate.ReadCluster(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if reads := s.kinds["/ConfigMapList"]; reads != test.reads {
				t.Errorf("ConfigMaps are read: %t, and should be: %t", reads, test.reads)
			}
		})
	}
}
