package migrate_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"croft.dev/croft/internal/adoption/migrate"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// FuzzMigrate checks for any input that every value is accounted for exactly once, that nothing
// panics, and that croft check accepts the output, or a problem names the missing parts.
func FuzzMigrate(f *testing.F) {
	documents := os.DirFS("testdata")
	err := fs.WalkDir(documents, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".yaml" {
			var data []byte
			data, err = fs.ReadFile(documents, path)
			f.Add(data)
		}
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		buildSharedProvisioner(selectors + "tags: {a: b}\nuserData: x\nblockDeviceMappings: [{deviceName: a, ebs: {volumeSize: 1Gi, turbo: 1}}]"),
		nodePool + "---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: default, labels: {croft.dev/pool: jobs}}\nspec: {role: nodes, kubelet: {clusterDNS: [a]}, context: 3, tags: {a: jobs}}\n",
		provisioner, buildInlineProvisioner("turbo: {}"), buildSharedProvisioner(selectors + "amiSelector: {\"aws::name\": a}"), nodePool, values, pools + onJobs,
		buildCapsuleTenant("resourceQuotas: {scope: Namespace, items: [{hard: {pods: 10}}]}\nnetworkPolicies: {items: [{podSelector: {}}]}"),
		buildReplication("rawItems: ["+rawConfig+", "+formatPolicy("matchLabels: {app: db}", "{}")+", "+formatBinding("view", "{kind: ServiceAccount, name: '{{ namespace }}'}")+"], additionalMetadata: {labels: {a: '{{ x }}'}}", "tenantSelector: {}"),
		buildTenantResource("namespacedItems: [{apiVersion: v1, kind: Namespace}], namespaceSelector: {matchLabels: {a: b}}"),
		buildTree("acme") + buildHNCConfiguration("configmaps", "Propagate") + addMetadata(rawConfig, "namespace: acme, annotations: {propagate.hnc.x-k8s.io/select: a, propagate.hnc.x-k8s.io/treeSelect: '!acme-db, '}"),
		buildTree("other") + buildHierarchy("acme", "parent: acme, labels: [{key: a, value: b}, 3]") + addMetadata(formatBinding("view", "{kind: ServiceAccount, name: bot}"), "namespace: acme-web, labels: {hnc.x-k8s.io/inherited-from: acme}"),
		"kind: List\napiVersion: v1\nitems: [{kind: Pod}, 3]", "kind: [a]\napiVersion: {}", "{", "---\n---\n- a", "tenants: {a: {nodePool: [b]}}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, problems := source.Parse("fuzz.yaml", data)
		r := migrate.Migrate(objects, problems, draft.Options{})
		expectAccounted(t, objects, r)
		if _, err := r.File.YAML(); err != nil {
			t.Error(err)
		}
		d, wrong := r.File.Declaration()
		if len(wrong) > 0 && len(r.Problems) == 0 {
			t.Errorf("croft check refuses what was written, and there is no problem: %v", wrong)
		}
		if d == nil {
			t.Error("there is no declaration")
		}
		for _, p := range r.Problems {
			if strings.Contains(p.Error(), "\n") {
				t.Errorf("a problem of two lines: %q", p.Error())
			}
		}
		r.Markdown()
		r.Text()
	})
}
