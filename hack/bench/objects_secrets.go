package main

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// secretName is the name of the Secret that is copied into all namespaces.
const secretName = "registry"

// measureSecrets declares a copy of a Secret for all tenants, and changes the Secret.
func (o *objectsBench) measureSecrets(ctx context.Context) ([]comparison, error) {
	if err := o.startCopier(ctx); err != nil {
		return nil, err
	}
	resources := []string{"secrets"}
	printProgress("objects: a Secret in all namespaces, by croft")
	created, err := o.follow(ctx, resources,
		func() error {
			return o.changeDefaults(ctx, func(d *v1alpha1.TenantDefaults) { d.Secrets = map[string]v1alpha1.SecretCopy{secretName: {}} })
		}, awaitSecret("first"))
	if err != nil {
		return nil, err
	}
	printProgress("objects: the same by a bare client")
	bare, err := o.writeBareSecrets(ctx)
	if err != nil {
		return nil, err
	}
	printProgress("objects: a changed Secret in all namespaces")
	source := newBenchSecret(v1alpha1.SecretsNamespace, secretName, "second")
	// The write of the source is not a copy.
	changed, err := o.follow(ctx, resources, func() error { return o.client.Update(ctx, source) }, awaitSecret("second"))
	if err != nil {
		return nil, err
	}
	changed.Writes--
	copies := float64(o.tenants)
	writes, err := changed.compareWrites(copies)
	writes.Name, writes.Note = "  writes for a copy", "compared with the target"
	return []comparison{{
		Name: fmt.Sprintf("a declared Secret in %d namespaces", o.tenants), Unit: inSeconds, Raw: map[string]any{"croft": created, "bare": bare},
		Croft: created.last(), Alternative: slices.Max(bare),
		Note: fmt.Sprintf("compared with %d workers that write the Secrets; croft first writes a RoleBinding in each namespace; %.2f writes for a copy", bareWorkers, created.Writes/copies),
	}, changed.compareSpread(fmt.Sprintf("a changed Secret in %d namespaces", o.tenants)), writes}, err
}

func newBenchSecret(namespace, name, version string) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string][]byte{"password": []byte(version)},
	}
}

// awaitSecret is for the copies of a version of the Secret.
func awaitSecret(version string) awaited {
	return awaited{&corev1.SecretList{}, secretName, func(object client.Object) bool {
		secret, ok := object.(*corev1.Secret)
		return ok && string(secret.Data["password"]) == version
	}}
}

// writeBareSecrets writes the Secret into all namespaces under another name.
func (o *objectsBench) writeBareSecrets(ctx context.Context) ([]float64, error) {
	all := make([][]*unstructured.Unstructured, o.tenants)
	for i := range all {
		var err error
		if all[i], err = tenants.ToUnstructured([]client.Object{newBenchSecret(tenants.Name(objectsPrefix, i), secretName+"-bare", "first")}); err != nil {
			return nil, err
		}
	}
	return writeBare(ctx, o.client, all)
}

// startCopier installs croft copy-secrets without its Deployment, creates the Secret, and runs the process with the
// rights of its service account.
func (o *objectsBench) startCopier(ctx context.Context) error {
	objects, err := install.Objects(install.Options{
		Image: "croft:bench", CopySecrets: true, Secrets: []estate.SecretCopy{{Name: secretName, Source: secretName}}, KeepKinds: true,
	})
	if err != nil {
		return err
	}
	// kwok would only simulate the pods.
	objects = slices.DeleteFunc(objects, func(object client.Object) bool { _, ok := object.(*appsv1.Deployment); return ok })
	if _, err := apply.New(o.client).Apply(ctx, objects...); err != nil {
		return err
	}
	if err := o.client.Create(ctx, newBenchSecret(v1alpha1.SecretsNamespace, secretName, "first")); err != nil {
		return err
	}
	kubeconfig, err := o.cluster.WriteKubeconfigFor(admissionpolicy.CopierUser, "system:serviceaccounts", "system:serviceaccounts:"+v1alpha1.SystemNamespace)
	if err != nil {
		return err
	}
	health := findFreeAddress()
	cmd := exec.Command(o.croft, "copy-secrets", "--kubeconfig", kubeconfig, "--source", secretName, "--health-addr", health, "--metrics-addr", "0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	o.stop = func() error {
		_ = cmd.Process.Kill() // it may have exited already
		_ = cmd.Wait()
		return nil
	}
	err = wait.PollUntilContextTimeout(ctx, restPoll, restTimeout, true, func(ctx context.Context) (bool, error) {
		return answersReady(ctx, "http://"+health+"/readyz"), nil
	})
	if err != nil {
		_ = o.stop()
		o.stop = func() error { return nil }
		return fmt.Errorf("croft copy-secrets is not ready: %w %s", err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// answersReady reports whether a readiness probe answers with 200.
func answersReady(ctx context.Context, url string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}
