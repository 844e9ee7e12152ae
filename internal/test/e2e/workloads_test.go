package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/test/sandbox"
)

// workloads is the directory of the workloads, relative to the repository's root.
const workloads = "internal/test/e2e/testdata/workloads"

// workload is an application as teams run it.
type workload struct {
	// name is the file's name, and level the Pod Security level that the workload needs.
	name, level string
	team        team
	// objects are the objects that the team applies; by are the objects that the workload's own
	// service accounts create at run time.
	objects []*unstructured.Unstructured
	by      map[string][]*unstructured.Unstructured
}

// TestWorkloads fails if any rule of croft breaks the workloads of real teams: if a policy
// refuses or warns about a legitimate object, if a role lacks a right, or if an admitted pod
// cannot run.
func TestWorkloads(t *testing.T) {
	sandbox.Thorough(t) // internal/prove/trial tests the same workloads without a cluster
	t.Parallel()        // it mostly waits
	file := path.Join(workloads, "croft.yaml")
	e := buildEstate(t, file, readRepositoryFile(t, file))
	all := readWorkloads(t, e)
	c := startWithCroft(t)
	if err := c.InstallCRDs(t.Context(), sandbox.GatewayAPI, sandbox.CertManager, sandbox.Flux); err != nil {
		t.Fatal(err)
	}
	c.createStorageClass(t)
	c.applyFile(t, file)
	for _, tenant := range e.Tenants {
		c.awaitQuotaCounted(t, tenant.Namespaces[0])
	}

	started := time.Now()
	var running []*workload
	for _, w := range all {
		t.Run(w.level+"/"+w.name, func(t *testing.T) {
			w.applyObjects(t, c)
			w.runCronJobs(t, c)
			running = append(running, w)
		})
	}
	t.Logf("%d workloads applied after %s", len(running), time.Since(started))
	c.awaitWorkloads(t, running)
	t.Logf("they run after %s", time.Since(started))

	for _, w := range running {
		w.createAtRuntime(t, c)
	}
	c.awaitWorkloads(t, running)
	c.expectAllPlaced(t, e)
	// GitOps tools apply the same objects every few minutes: croft's mutations must not
	// make that fail.
	for _, w := range running {
		w.applyObjects(t, c)
	}
	var nodes corev1.NodeList
	if err := c.admin.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	t.Logf("applied again after %s; they run on %d nodes", time.Since(started), len(nodes.Items))

	for _, w := range running {
		w.deleteObjects(t, c)
	}
	t.Logf("deleted after %s", time.Since(started))
}

// readWorkloads reads the workloads from one directory per Pod Security level, with one file
// per workload. The workload itself creates the objects in <workload>@<service account>.yaml.
func readWorkloads(t testing.TB, e *estate.Estate) []*workload {
	t.Helper()
	var all []*workload
	for _, tenant := range e.Tenants {
		level := string(tenant.PodSecurity)
		files, err := filepath.Glob(filepath.Join(root, workloads, level, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var last *workload // files are sorted by name: <workload>.yaml before its additions
		for _, file := range files {
			objects := readObjects(t, file, tenant.Namespaces[0])
			name, account, own := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "@")
			switch {
			case !own:
				last = &workload{
					name: name, level: level, objects: objects, by: map[string][]*unstructured.Unstructured{},
					team: team{tenant: tenant.Namespaces[0], pool: tenant.Pools[0], group: tenant.Access[0].Group},
				}
				all = append(all, last)
			case last == nil || last.name != name:
				t.Fatalf("%s: there is no %s.yaml", file, name)
			default:
				last.by[account] = objects
			}
		}
		if last == nil {
			t.Fatalf("there is no workload for tenant %s in %s/%s", tenant.Name, workloads, level)
		}
	}
	return all
}

func readObjects(t testing.TB, file, namespace string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	var objects []*unstructured.Unstructured
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(content)); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		o := &unstructured.Unstructured{}
		if err == nil {
			err = yaml.UnmarshalStrict(document, &o.Object)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(o.Object) == 0 {
			continue // a comment before the first object
		}
		o.SetNamespace(namespace) // as kubectl -n does
		objects = append(objects, o)
	}
}

// applyObjects applies a workload as a member of its team.
func (w *workload) applyObjects(t testing.TB, c *cluster) {
	t.Helper()
	as, warnings := c.newWarnedClient(t, w.newMember())
	for _, o := range w.objects {
		err := retryQuotaConflicts(func() error {
			// Apply writes the API server's response into the object, so it gets a copy.
			return as.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("kubectl"))
		})
		w.expectAdmitted(t, o, err, warnings.takeAll())
	}
}

// runCronJobs runs each CronJob now, as `kubectl create job --from` does: most are not due
// until night.
func (w *workload) runCronJobs(t testing.TB, c *cluster) {
	t.Helper()
	as, warnings := c.newWarnedClient(t, w.newMember())
	for _, o := range w.objects {
		if o.GetKind() != "CronJob" {
			continue
		}
		var cron batchv1.CronJob
		if err := as.Get(t.Context(), client.ObjectKeyFromObject(o), &cron); err != nil {
			w.expectAdmitted(t, o, err, warnings.takeAll())
			continue
		}
		job := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: cron.Namespace, Name: cron.Name + "-now", Labels: cron.Spec.JobTemplate.Labels,
				Annotations:     map[string]string{"cronjob.kubernetes.io/instantiate": "manual"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: cron.Name, UID: cron.UID}},
			},
			Spec: cron.Spec.JobTemplate.Spec,
		}
		err := retryQuotaConflicts(func() error { return as.Create(t.Context(), job.DeepCopy()) })
		w.expectAdmitted(t, o, err, warnings.takeAll())
	}
}

// createAtRuntime creates, as the workload's service accounts, the objects that these create at
// run time.
func (w *workload) createAtRuntime(t testing.TB, c *cluster) {
	t.Helper()
	for account, objects := range w.by {
		as, warnings := c.newWarnedClient(t, rest.ImpersonationConfig{
			UserName: "system:serviceaccount:" + w.team.tenant + ":" + account,
			Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + w.team.tenant, "system:authenticated"},
		})
		for _, o := range objects {
			err := retryQuotaConflicts(func() error { return as.Create(t.Context(), o.DeepCopy()) })
			w.expectAdmitted(t, o, err, warnings.takeAll())
		}
	}
}

// deleteObjects deletes a workload as a member of its team, as `helm uninstall` does.
func (w *workload) deleteObjects(t testing.TB, c *cluster) {
	t.Helper()
	as, warnings := c.newWarnedClient(t, w.newMember())
	for _, o := range w.objects {
		err := as.Delete(t.Context(), o.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground))
		w.expectAdmitted(t, o, err, warnings.takeAll())
	}
}

func (w *workload) newMember() rest.ImpersonationConfig {
	return rest.ImpersonationConfig{UserName: "jane", Groups: []string{w.team.group, "system:authenticated"}}
}

// expectAdmitted fails the test if an object was refused, or admitted with a warning.
func (w *workload) expectAdmitted(t testing.TB, o *unstructured.Unstructured, err error, warnings []string) {
	t.Helper()
	if err != nil {
		t.Errorf("%s/%s: %s %s was refused: %v", w.level, w.name, o.GetKind(), o.GetName(), err)
	}
	for _, warning := range warnings {
		t.Errorf("%s/%s: %s %s was warned about: %s", w.level, w.name, o.GetKind(), o.GetName(), warning)
	}
}

// newWarnedClient returns a client of a user, and the warnings that it receives.
func (c *cluster) newWarnedClient(t testing.TB, who rest.ImpersonationConfig) (client.Client, *warnings) {
	t.Helper()
	got := &warnings{}
	config := rest.CopyConfig(c.Config)
	config.Impersonate = who
	config.WarningHandlerWithContext = got
	config.Timeout = moments
	as, err := client.New(config, client.Options{Scheme: c.admin.Scheme(), Mapper: c.admin.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	return as, got
}

// warnings collects the API server's warnings.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// takeAll returns the warnings since the last call.
func (w *warnings) takeAll() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}

// awaitWorkloads waits until all workloads run: all replicas and all other pods are ready, jobs are
// complete and claims are bound.
func (c *cluster) awaitWorkloads(t testing.TB, running []*workload) {
	t.Helper()
	awaitCondition(t, patience, "the workloads to run", func(ctx context.Context) error {
		if err := c.provisionVolumes(ctx); err != nil {
			return err
		}
		unready := unreadyObjects{}
		for _, list := range []client.ObjectList{
			&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{}, &appsv1.ReplicaSetList{},
			&batchv1.JobList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PodList{},
		} {
			if err := c.admin.List(ctx, list); err != nil {
				return err
			}
			unready.addObjects(list)
		}
		if len(unready) == 0 {
			return nil
		}
		var lines []string
		for object, state := range unready {
			lines = append(lines, findWorkload(running, object)+": "+object+" "+state)
		}
		slices.Sort(lines)
		return fmt.Errorf("%d do not:\n%s", len(lines), strings.Join(lines[:min(len(lines), 20)], "\n"))
	})
}

// expectAllPlaced fails the test if a pod is not on its team's nodes, regardless of its other
// constraints.
func (c *cluster) expectAllPlaced(t testing.TB, e *estate.Estate) {
	t.Helper()
	for _, tenant := range e.Tenants {
		var pods corev1.PodList
		if err := c.admin.List(t.Context(), &pods, client.InNamespace(tenant.Namespaces[0])); err != nil {
			t.Fatal(err)
		}
		for i := range pods.Items {
			expectPlacement(t, &pods.Items[i], e.Platform.NodePoolKey, tenant.Pools[0])
		}
	}
}

// findWorkload returns the workload of an object: the one that declares it, or the one with an
// object whose name is a prefix of the object's, as for pods and claims.
func findWorkload(running []*workload, object string) string {
	_, object, _ = strings.Cut(object, " ")
	var found, by string
	for _, w := range running {
		for _, o := range w.objects {
			name := o.GetNamespace() + "/" + o.GetName()
			if len(name) > len(by) && (object == name || strings.HasPrefix(object, name+"-")) {
				found, by = w.level+"/"+w.name, name
			}
		}
	}
	return found
}

// unreadyObjects maps objects, by kind and name, to the reason why they do not run.
type unreadyObjects map[string]string

func (u unreadyObjects) addObjects(list client.ObjectList) {
	switch list := list.(type) {
	case *appsv1.DeploymentList:
		for i := range list.Items {
			d := &list.Items[i]
			u.addReplicas("Deployment", d, ptr.Deref(d.Spec.Replicas, 1), d.Status.AvailableReplicas)
		}
	case *appsv1.StatefulSetList:
		for i := range list.Items {
			s := &list.Items[i]
			u.addReplicas("StatefulSet", s, ptr.Deref(s.Spec.Replicas, 1), s.Status.AvailableReplicas)
		}
	case *appsv1.ReplicaSetList:
		for i := range list.Items {
			r := &list.Items[i]
			u.addReplicas("ReplicaSet", r, ptr.Deref(r.Spec.Replicas, 1), r.Status.AvailableReplicas)
		}
	case *appsv1.DaemonSetList:
		for i := range list.Items {
			d := &list.Items[i]
			// There are nodes: a DaemonSet that selects none is wrong, too.
			u.addReplicas("DaemonSet", d, max(1, d.Status.DesiredNumberScheduled), d.Status.NumberAvailable)
		}
	case *batchv1.JobList:
		for i := range list.Items {
			j := &list.Items[i]
			complete := slices.ContainsFunc(j.Status.Conditions, func(condition batchv1.JobCondition) bool {
				return condition.Type == batchv1.JobComplete && condition.Status == corev1.ConditionTrue
			})
			if !complete {
				u.addState("Job", j, fmt.Sprintf("is not complete: %d pods succeeded, %d failed", j.Status.Succeeded, j.Status.Failed))
			}
		}
	case *corev1.PersistentVolumeClaimList:
		for i := range list.Items {
			if claim := &list.Items[i]; claim.Status.Phase != corev1.ClaimBound {
				u.addState("PersistentVolumeClaim", claim, fmt.Sprintf("is %s", claim.Status.Phase))
			}
		}
	case *corev1.PodList:
		for i := range list.Items {
			pod := &list.Items[i]
			if pod.Status.Phase == corev1.PodSucceeded {
				continue
			}
			if err := checkRunning(pod); err != nil {
				u.addState("Pod", pod, err.Error())
			}
		}
	}
}

func (u unreadyObjects) addReplicas(kind string, o client.Object, want, have int32) {
	if have != want {
		u.addState(kind, o, fmt.Sprintf("has %d of %d replicas available", have, want))
	}
}

func (u unreadyObjects) addState(kind string, o client.Object, state string) {
	u[kind+" "+o.GetNamespace()+"/"+o.GetName()] = state
}

const (
	storageClass = "gp3"
	driver       = "ebs.csi.aws.com"
)

// createStorageClass creates a default StorageClass as on EKS; provision is its provisioner. No
// volume is attached.
func (c *cluster) createStorageClass(t testing.TB) {
	t.Helper()
	createObjects(t, c.admin,
		&storagev1.CSIDriver{
			ObjectMeta: metav1.ObjectMeta{Name: driver},
			Spec:       storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)},
		},
		&storagev1.StorageClass{
			ObjectMeta:        metav1.ObjectMeta{Name: storageClass, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
			Provisioner:       driver,
			VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
		})
}

// provisionVolumes replaces the provisioner that a sandbox lacks: it creates a volume for each
// claim whose pod was assigned a node. Kubernetes does the rest: its scheduler waits for the
// volume, and its controller binds it.
func (c *cluster) provisionVolumes(ctx context.Context) error {
	var claims corev1.PersistentVolumeClaimList
	if err := c.admin.List(ctx, &claims); err != nil {
		return err
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Spec.VolumeName != "" || claim.Annotations["volume.kubernetes.io/selected-node"] == "" {
			continue
		}
		source := corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "vol-" + string(claim.UID)}}
		if c.localVolumes {
			source = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: "/var/lib/volumes/" + string(claim.UID), Type: ptr.To(corev1.HostPathDirectoryOrCreate),
			}}
		}
		err := c.admin.Create(ctx, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(claim.UID), Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": driver}},
			Spec: corev1.PersistentVolumeSpec{
				Capacity:                      claim.Spec.Resources.Requests,
				AccessModes:                   claim.Spec.AccessModes,
				StorageClassName:              ptr.Deref(claim.Spec.StorageClassName, ""),
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
				ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
				PersistentVolumeSource:        source,
			},
		})
		if client.IgnoreAlreadyExists(err) != nil {
			return err
		}
	}
	return nil
}
