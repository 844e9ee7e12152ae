package sandbox

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// TestServers expects several API servers on several members of etcd to form one cluster, in
// which each part can fail independently.
func TestServers(t *testing.T) {
	EndToEnd(t)
	c := Start(t, Options{Components: APIOnly, APIServers: 3, EtcdMembers: 3})
	at := func(server string) kubernetes.Interface {
		config, err := c.ConfigAt(server)
		if err != nil {
			t.Fatal(err)
		}
		return kubernetes.NewForConfigOrDie(config)
	}
	first, second, third := at("kube-apiserver"), at("kube-apiserver-2"), at("kube-apiserver-3")
	write := func(client kubernetes.Interface, name string, within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	// eventually waits for a server that has just been reconnected.
	eventually := func(what string, try func() error) {
		t.Helper()
		last := errors.New("not tried")
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			last = try()
			return last == nil, nil
		})
		if err != nil {
			t.Fatalf("%s: %v", what, last)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	must(write(second, "one", time.Minute))
	eventually("the third server has what the second wrote", func() error {
		_, err := third.CoreV1().ConfigMaps("default").Get(t.Context(), "one", metav1.GetOptions{})
		return err
	})

	must(c.Freeze("kube-apiserver-2"))
	if err := write(second, "frozen", 2*time.Second); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a frozen server answers: %v", err)
	}
	must(write(first, "two", time.Minute))
	must(c.Thaw("kube-apiserver-2"))
	eventually("the second server answers again", func() error { return write(second, "thawed", 5*time.Second) })

	must(c.Cut("kube-apiserver-3"))
	if err := write(third, "cut", 2*time.Second); err == nil {
		t.Error("a server writes that is cut off from etcd")
	}
	must(write(first, "three", time.Minute))
	must(c.Thaw("kube-apiserver-3"))
	eventually("the third server writes again", func() error { return write(third, "connected", 5*time.Second) })

	must(c.Kill("etcd-2"))
	eventually("the cluster lives without a member of etcd", func() error { return write(first, "four", 5*time.Second) })
	must(c.Kill("kube-apiserver"))
	must(write(second, "five", time.Minute))
	eventually("the first server is back", func() error { return write(first, "six", 5*time.Second) })
}
