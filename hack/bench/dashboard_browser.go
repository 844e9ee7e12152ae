package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"croft.dev/croft/hack/internal/machine"
	"croft.dev/croft/hack/internal/samples"
	"croft.dev/croft/hack/internal/tenants"
)

const (
	// browserRounds is the number of times that the browser opens each page.
	browserRounds = 15
	// observationTimeout is the time limit of one observation, in seconds. Headlamp needs many seconds for 30,000 pods.
	observationTimeout = 60
	// mostBytes and mostScripts are the targets for the first page, as transferred.
	mostBytes, mostScripts = 150 << 10, 60 << 10
	// headlampCluster is the name of the cluster in Headlamp.
	headlampCluster = "bench"
)

// pageRequest and pageResult are the input and the output of `browser measure`: hack/browser/measure.go.
type pageRequest struct {
	URL     string            `json:"url,omitempty"`
	Cookies map[string]string `json:"cookies,omitempty"`
	Storage map[string]string `json:"storage,omitempty"`
	Cold    bool              `json:"cold,omitempty"`
	Awaits  string            `json:"awaits"`
	Gone    bool              `json:"gone,omitempty"`
	Timeout float64           `json:"timeout"`
}

type pageResult struct {
	Seconds  float64 `json:"seconds"`
	At       float64 `json:"at"`
	Bytes    float64 `json:"bytes"`
	Scripts  float64 `json:"scripts"`
	Requests int     `json:"requests"`
	Memory   float64 `json:"memory"`
	Text     string  `json:"text"`
}

// chromium is a headless Chromium.
type chromium struct {
	input  *json.Encoder
	output *json.Decoder
	stderr bytes.Buffer
	stop   func()
}

// startChromium starts bin/browser, which lies next to croft. It trusts the certificate of the dashboard.
func startChromium(croft, dashboard string) (*chromium, error) {
	authority, err := saveCertificate(dashboard)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(filepath.Dir(croft), "browser"), "measure", "--certificate-authority", authority)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	c := &chromium{}
	cmd.Stderr = &c.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.input, c.output = json.NewEncoder(in), json.NewDecoder(out)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a browser: %w: run `make browser`", err)
	}
	c.stop = func() {
		_ = in.Close() // then the browser ends
		_ = cmd.Wait()
		_ = os.Remove(authority)
	}
	return c, nil
}

// saveCertificate writes the certificate of a server to a temporary file.
func saveCertificate(server string) (path string, err error) {
	address, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	connection, err := tls.Dial("tcp", address.Host, &tls.Config{InsecureSkipVerify: true}) // self-signed, and of this machine
	if err != nil {
		return "", err
	}
	defer func() { _ = connection.Close() }() // it only served the certificate
	file, err := os.CreateTemp("", "croft-bench-*.crt")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	certificate := connection.ConnectionState().PeerCertificates[0]
	return file.Name(), pem.Encode(file, &pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

// observe opens or observes a page. A page that does not show the text in time is an error.
func (c *chromium) observe(l pageRequest) (pageResult, error) {
	l.Timeout = observationTimeout
	s, err := c.send(l)
	if err == nil && s.Seconds < 0 {
		err = fmt.Errorf("%s does not show %q within %d s: %s", l.URL, l.Awaits, observationTimeout, strings.Join(strings.Fields(s.Text), " "))
	}
	return s, err
}

func (c *chromium) send(l pageRequest) (s pageResult, err error) {
	if err := c.input.Encode(l); err != nil {
		return s, fmt.Errorf("ask the browser: %w: %s", err, c.stderr.String())
	}
	if err := c.output.Decode(&s); err != nil {
		return s, fmt.Errorf("read the browser's answer: %w: %s", err, c.stderr.String())
	}
	return s, nil
}

// awaitText waits until the last page shows a text, and returns the largest memory of the page meanwhile.
func (c *chromium) awaitText(ctx context.Context, text string, limit time.Duration) (most float64, err error) {
	for end := time.Now().Add(limit); time.Now().Before(end) && ctx.Err() == nil; {
		s, err := c.send(pageRequest{Awaits: text, Timeout: 2})
		most = max(most, s.Memory)
		if err != nil || s.Seconds >= 0 {
			return most, err
		}
	}
	return most, fmt.Errorf("the page does not show %q within %s", text, limit)
}

// observeRepeatedly observes a page several times, first with an empty cache.
func (c *chromium) observeRepeatedly(ctx context.Context, l pageRequest) (cold pageResult, seconds []float64, err error) {
	l.Cold = true
	if cold, err = c.observe(l); err != nil {
		return cold, nil, err
	}
	l.Cold = false
	for range browserRounds {
		if ctx.Err() != nil {
			return cold, seconds, ctx.Err()
		}
		s, err := c.observe(l)
		if err != nil {
			return cold, seconds, err
		}
		seconds = append(seconds, s.Seconds)
	}
	return cold, seconds, nil
}

// openInBrowser returns the observation of a page by a user of the dashboard.
func (v *visitor) openInBrowser(path, awaits string) pageRequest {
	base, err := url.Parse(v.url)
	l := pageRequest{URL: v.url + path, Awaits: awaits, Cookies: map[string]string{}}
	if err != nil {
		return l // the observation fails
	}
	for _, cookie := range v.client.Jar.Cookies(base) {
		l.Cookies[cookie.Name] = cookie.Value
	}
	return l
}

// measureBrowser measures pages in Chromium, from the navigation until their content is painted, compared with
// Headlamp's pages about the same objects.
func (d *dashboardBench) measureBrowser(ctx context.Context) (found []comparison, err error) {
	printProgress("dashboard: pages in Chromium")
	namespace, first := tenants.Name("tenant", d.tenants-1), tenants.Name("tenant", 0)
	for _, p := range []struct {
		name, path, awaits string
		user               *visitor
		target             float64
		// headlamp is the path of Headlamp's page about the same objects, and content its text. The user enters the
		// namespaces in Headlamp's settings, since members of a tenant cannot list namespaces.
		headlamp, content string
		namespaces        []string
	}{
		{"first page of a team", "/namespaces/" + namespace, namespace, d.team, 0.3, "", "", nil},
		{"workloads of a team", "/namespaces/" + namespace + "/workloads", "web-1", d.team, 0.3, "/c/" + headlampCluster + "/pods?namespace=" + namespace, "web-1", []string{namespace}},
		{"first page of a platform admin", "/", "croft status", d.admin, 1, "", "", nil},
		{"list of tenants", "/tenants", first, d.admin, 1, "/c/" + headlampCluster + "/namespaces", "kubernetes.io/metadata.name: tenant-", nil},
	} {
		cold, seconds, err := d.browser.observeRepeatedly(ctx, p.user.openInBrowser(p.path, p.awaits))
		if err != nil {
			return found, err
		}
		found = append(found, compareWithTargets(p.name, cold, seconds, p.target)...)
		if d.headlamp == nil || p.headlamp == "" {
			continue
		}
		found = append(found, d.headlamp.compare(ctx, p.name, cold, seconds, d.headlamp.open(p.headlamp, p.content, p.user, p.namespaces))...)
	}
	return found, nil
}

func compareWithTargets(name string, cold pageResult, seconds []float64, target float64) []comparison {
	return []comparison{
		{
			Name: name + ", in Chromium", Unit: inSeconds, Croft: samples.Median(seconds), Alternative: target, Raw: seconds,
			Note: fmt.Sprintf("compared with the target; p95 %.0f ms; %.0f ms with an empty cache; memory of the page %s",
				1000*samples.Percentile(95, seconds), 1000*cold.Seconds, machine.FormatBytes(cold.Memory)),
		},
		{
			Name: name + ", transferred", Unit: inBytes, Croft: cold.Bytes, Alternative: mostBytes,
			Note: fmt.Sprintf("compared with the target; %d responses; scripts %s, target %s", cold.Requests, machine.FormatBytes(cold.Scripts), machine.FormatBytes(mostScripts)),
		},
	}
}

// compare compares the dashboard's page with Headlamp's. If Headlamp's page never shows the text, the note has the error.
func (h *headlamp) compare(ctx context.Context, name string, cold pageResult, seconds []float64, page pageRequest) []comparison {
	otherCold, otherSeconds, err := h.browser.observeRepeatedly(ctx, page)
	if err != nil {
		return []comparison{{Name: name + ", Headlamp", Unit: inSeconds, Croft: samples.Median(seconds), Note: err.Error()}}
	}
	return []comparison{
		{
			Name: name + ", Headlamp", Unit: inSeconds, Croft: samples.Median(seconds), Alternative: samples.Median(otherSeconds), Raw: [][]float64{seconds, otherSeconds},
			Note: fmt.Sprintf("compared with Headlamp; its p95 %.0f ms; %.0f ms with an empty cache; memory of the page %s; %d responses",
				1000*samples.Percentile(95, otherSeconds), 1000*otherCold.Seconds, machine.FormatBytes(otherCold.Memory), otherCold.Requests),
		},
		{Name: name + ", transferred, Headlamp", Unit: inBytes, Croft: cold.Bytes, Alternative: otherCold.Bytes, Note: "compared with Headlamp"},
	}
}

// headlamp is a Headlamp server for the cluster, and a browser of its own, because one browser's pages share processes.
type headlamp struct {
	url     string
	browser *chromium
	stop    func()
}

// startHeadlamp starts the server of a directory in which Headlamp was built by its `make backend frontend`.
func (d *dashboardBench) startHeadlamp(ctx context.Context, croft, directory string) (*headlamp, error) {
	scratch, err := os.MkdirTemp("", "croft-bench-headlamp-")
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(scratch, "kubeconfig")
	if err := clientcmd.WriteToFile(*formatKubeconfig(d.cluster.Config), kubeconfig); err != nil {
		return nil, err
	}
	address := findFreeAddress()
	host, port, _ := strings.Cut(address, ":")
	cmd := exec.Command(filepath.Join(directory, "backend", "headlamp-server"), "-kubeconfig", kubeconfig, "-listen-addr", host, "-port", port,
		"-html-static-dir", filepath.Join(directory, "frontend", "build"), "-plugins-dir", scratch, "-user-plugins-dir", scratch, "-log-level", "error")
	cmd.Env = append(os.Environ(), "HOME="+scratch)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start Headlamp: %w", err)
	}
	browser, err := startChromium(croft, d.url)
	if err != nil {
		return nil, err
	}
	h := &headlamp{url: "http://" + address, browser: browser, stop: func() {
		browser.stop()
		_ = cmd.Process.Kill() // it may have exited already
		_ = cmd.Wait()
		_ = os.RemoveAll(scratch)
	}}
	visitor := newVisitor(h.url)
	return h, wait.PollUntilContextTimeout(ctx, restPoll, restTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := visitor.get(ctx, "/config")
		return err == nil, nil
	})
}

// formatKubeconfig returns a kubeconfig of the cluster without credentials. Headlamp adds the user's token.
func formatKubeconfig(config *rest.Config) *clientcmdapi.Config {
	k := clientcmdapi.NewConfig()
	k.Clusters[headlampCluster] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData}
	k.AuthInfos[headlampCluster] = clientcmdapi.NewAuthInfo()
	k.Contexts[headlampCluster] = &clientcmdapi.Context{Cluster: headlampCluster, AuthInfo: headlampCluster}
	k.CurrentContext = headlampCluster
	return k
}

// open returns the observation of a page by a user.
func (h *headlamp) open(path, awaits string, user *visitor, namespaces []string) pageRequest {
	l := pageRequest{URL: h.url + path, Awaits: awaits, Cookies: map[string]string{"headlamp-auth-" + headlampCluster + ".0": user.direct.BearerToken}}
	if namespaces != nil {
		settings, _ := json.Marshal(map[string][]string{"allowedNamespaces": namespaces}) // strings always marshal
		l.Storage = map[string]string{"cluster_settings." + headlampCluster: string(settings)}
	}
	return l
}

// measureScreen measures the time from the creation of a pod until the browser has painted it. Changes come at random
// times, up to 4 seconds apart: the dashboard reads a page at most once a second.
func (d *dashboardBench) measureScreen(ctx context.Context) ([]comparison, error) {
	printProgress("dashboard: changes on the screen")
	namespace := tenants.Name("tenant", d.tenants-1)
	if _, err := d.browser.observe(d.team.openInBrowser("/namespaces/"+namespace+"/workloads", "web-0")); err != nil {
		return nil, err
	}
	var seconds []float64
	for i := range dashboardChanges {
		name := fmt.Sprintf("changed-%d", i)
		time.Sleep(rand.N(4 * time.Second))
		start := time.Now()
		if err := d.createPod(ctx, namespace, name); err != nil {
			return nil, err
		}
		s, err := d.browser.observe(pageRequest{Awaits: name})
		if err != nil {
			return nil, err
		}
		seconds = append(seconds, s.At/1000-float64(start.UnixMilli())/1000)
	}
	return []comparison{{
		Name: "change to screen, p95", Unit: inSeconds, Croft: samples.Percentile(95, seconds), Alternative: 1, Raw: seconds,
		Note: fmt.Sprintf("compared with the target; %d pods created, until Chromium has painted each; median %.0f ms", len(seconds), 1000*samples.Median(seconds)),
	}}, nil
}
