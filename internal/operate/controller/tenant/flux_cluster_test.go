package tenant_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/gitops"
)

// settings is a ConfigMap. Its second parameter adds fields to the metadata.
const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s%s}\ndata: {a: b}\n"

// TestFlux pushes manifests to tenants' sources, and the real kustomize-controller applies
// them. Permitted manifests are applied, attacks from Git are denied, and `croft why` names
// the cause. The test belongs to the third tier (make test-all) and needs `make flux`. The
// team bank pushes with git to the sandbox's Git server. For the team shop the test serves
// the artifacts itself, because git cannot write some of the attacks.
func TestFlux(t *testing.T) {
	sandbox.Thorough(t)
	f := &fixture{operatortest.Start(t, sandbox.WithControllers, sandbox.Flux)}
	stop := f.Operate()
	defer stop()
	url, err := f.Cluster.Git("deploy")
	if err != nil {
		t.Fatal(err)
	}
	shop, bank := operatortest.NewTenant("shop", "apps"), operatortest.NewTenant("bank", "apps")
	shop.Spec.Sources = map[string]v1alpha1.Source{"app": {Git: "https://git.example.org/shop/deploy", Path: "./deploy", Timeout: "10s"}}
	bank.Spec.Sources = map[string]v1alpha1.Source{"app": {Git: url}}
	bank.Spec.Policy.SourceHosts = []string{"127.0.0.1"}
	f.Create(operatortest.NewPlatform(), operatortest.NewPool("apps"), shop, bank)
	f.AwaitReady(shop, bank)
	pushed := f.newClone(url)
	pushed.pushFile("a.yaml", fmt.Sprintf(settings, "pushed", ""))
	f.awaitConfigMap("bank", "pushed", true)
	pushed.pushFile("a.yaml", fmt.Sprintf(settings, "pushed-again", ""))
	f.awaitConfigMap("bank", "pushed-again", true)
	f.awaitConfigMap("bank", "pushed", false)
	f.awaitExplanation("bank", "kustomization/croft-app", "", "")

	git := newRepository(f, f.awaitFluxObject(gitops.GitRepository, "shop", "croft-app"))
	git.pushFiles(map[string]string{"deploy/a.yaml": fmt.Sprintf(settings, "first", "")})
	git.awaitOutcome("Ready", "Applied revision")
	f.awaitConfigMap("shop", "first", true)

	git.pushFiles(map[string]string{"deploy/a.yaml": fmt.Sprintf(settings, "second", ", namespace: bank")})
	git.awaitOutcome("Ready", "Applied revision")
	f.awaitConfigMap("shop", "second", true)
	f.awaitConfigMap("bank", "second", false)
	f.awaitConfigMap("shop", "first", false) // removed from Git, and so deleted

	for _, attack := range attacksFromGit {
		t.Log("push " + attack.name)
		git.pushFiles(attack.files, attack.links...)
		git.awaitOutcome("Failed", attack.description)
		f.awaitExplanation("shop", "kustomization/croft-app", attack.why, attack.cause)
	}
	// The last attack must not prevent later pushes from being applied.
	git.pushFiles(map[string]string{"deploy/a.yaml": fmt.Sprintf(settings, "third", "")})
	git.awaitOutcome("Ready", "Applied revision")
	f.awaitExplanation("shop", "kustomization/croft-app", "", "")

	testRemoteBases(git)
	testForeignKeys(git)
	testPlatformAccount(git)
	testLargePush(git, pushed)

	// Applied objects remain when the source is removed.
	f.awaitConfigMap("shop", "third", true)
}

// awaitConfigMap waits until a ConfigMap exists in a namespace, or does not.
func (f *fixture) awaitConfigMap(namespace, name string, exists bool) {
	f.Helper()
	f.Await(fmt.Sprintf("ConfigMap %s in %s: %t", name, namespace, exists), func() string {
		err := f.Client.Get(f.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ConfigMap{})
		if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) == exists {
			return fmt.Sprint("got ", err)
		}
		return ""
	})
}

// repository serves artifacts of a Git repository as source-controller does.
type repository struct {
	*fixture
	source, kustomization *unstructured.Unstructured
	server                *httptest.Server
	mu                    sync.Mutex
	served                map[string][]byte
	revision              string
}

func newRepository(f *fixture, source *unstructured.Unstructured) *repository {
	r := &repository{fixture: f, source: source, served: map[string][]byte{}}
	r.kustomization = f.awaitFluxObject(gitops.Kustomization, source.GetNamespace(), source.GetName())
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		content, ok := r.served[req.URL.Path]
		r.mu.Unlock()
		if !ok {
			http.NotFound(w, req)
			return
		}
		_, _ = w.Write(content)
	}))
	f.Cleanup(r.server.Close)
	return r
}

func (r *repository) serveContent(path string, content []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.served[path] = content
}

// pushFiles serves files and other tar entries as the next revision.
func (r *repository) pushFiles(files map[string]string, links ...tar.Header) {
	r.Helper()
	var content bytes.Buffer
	zipped := gzip.NewWriter(&content)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			r.Fatal(err)
		}
		if _, err := archive.Write([]byte(files[name])); err != nil {
			r.Fatal(err)
		}
	}
	for i := range links {
		if err := archive.WriteHeader(&links[i]); err != nil {
			r.Fatal(err)
		}
	}
	for _, c := range []interface{ Close() error }{archive, zipped} {
		if err := c.Close(); err != nil {
			r.Fatal(err)
		}
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(content.Bytes()))
	path := "/" + digest + ".tar.gz"
	r.serveContent(path, content.Bytes())
	r.revision = "main@sha1:" + digest[:40]
	status, err := json.Marshal(map[string]any{"status": map[string]any{
		"observedGeneration": r.source.GetGeneration(),
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored artifact",
			"lastTransitionTime": metav1.Now(), "observedGeneration": r.source.GetGeneration()}},
		"artifact": map[string]any{"path": strings.TrimPrefix(path, "/"), "url": r.server.URL + path, "revision": r.revision, "digest": "sha256:" + digest,
			"size": content.Len(), "lastUpdateTime": time.Now().UTC().Format(time.RFC3339)},
	}})
	if err != nil {
		r.Fatal(err)
	}
	if err := r.Client.Status().Patch(r.Context(), r.source.DeepCopy(), client.RawPatch(types.MergePatchType, status)); err != nil {
		r.Fatal(err)
	}
}

// awaitOutcome waits until the last push has an outcome, "Ready" or "Failed", with a message. The
// outcome "Ready or Failed" accepts both.
func (r *repository) awaitOutcome(outcome, text string) {
	r.Helper()
	r.Await("the Kustomization "+outcome, func() string {
		live := r.kustomization.DeepCopy()
		if err := r.Client.Get(r.Context(), client.ObjectKeyFromObject(live), live); err != nil {
			return err.Error()
		}
		attempted, _, _ := unstructured.NestedString(live.Object, "status", "lastAttemptedRevision")
		conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
		for _, c := range conditions {
			c, _ := c.(map[string]any)
			if c["type"] != "Ready" {
				continue
			}
			message := fmt.Sprint(c["message"])
			got := map[any]string{"True": "Ready", "False": "Failed"}[c["status"]]
			// Flux sets the attempted revision only after it has found the path in it.
			if (attempted == r.revision || c["reason"] == "ArtifactFailed") && got != "" && strings.Contains(outcome, got) && strings.Contains(message, text) {
				return ""
			}
			return fmt.Sprintf("attempted %s, want %s; Ready=%v: %s", attempted, r.revision, c["status"], message)
		}
		return fmt.Sprint("conditions: ", conditions)
	})
}
