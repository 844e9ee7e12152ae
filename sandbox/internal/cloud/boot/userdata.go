// Package boot registers instances as nodes: it reads an instance's user data as the image's
// own programs would, and registers the node with the API server as a kubelet does, with a
// kubelet's rights.
package boot

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"regexp"
	"strings"

	"github.com/pelletier/go-toml/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/sandbox/internal/cloud/journal"
)

// Kubelet is the kubelet's configuration in user data.
type Kubelet struct {
	Labels  map[string]string
	Taints  []corev1.Taint
	MaxPods int64
	// System is the image's system, derived from the format of the user data.
	System journal.System
}

// ReadUserData reads the user data that Karpenter writes for Amazon Linux and Bottlerocket.
func ReadUserData(encoded string) (Kubelet, error) {
	k := Kubelet{Labels: map[string]string{}, System: journal.AmazonLinux2}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return k, fmt.Errorf("user data: %w", err)
	}
	text := string(raw)
	switch {
	case strings.HasPrefix(text, "MIME-Version:"):
		err = k.readArchive(text)
	case strings.Contains(text, "[settings"):
		err = k.readBottlerocket(text)
	default:
		err = k.readScript(text)
	}
	if err != nil {
		return k, fmt.Errorf("user data: %w", err)
	}
	return k, nil
}

func (k *Kubelet) readArchive(text string) error {
	message, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return err
	}
	_, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	parts := multipart.NewReader(message.Body, params["boundary"])
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return err
		}
		if strings.HasPrefix(part.Header.Get("Content-Type"), "application/node.eks.aws") {
			err = k.readNodeConfig(content)
		} else {
			err = k.readScript(string(content))
		}
		if err != nil {
			return err
		}
	}
}

// nodeConfig is the part of nodeadm's NodeConfig that affects a Node.
type nodeConfig struct {
	Spec struct {
		Kubelet struct {
			Config struct {
				MaxPods            int64          `json:"maxPods"`
				RegisterWithTaints []corev1.Taint `json:"registerWithTaints"`
			} `json:"config"`
			Flags []string `json:"flags"`
		} `json:"kubelet"`
	} `json:"spec"`
}

func (k *Kubelet) readNodeConfig(content []byte) error {
	var config nodeConfig
	if err := yaml.Unmarshal(content, &config); err != nil {
		return err
	}
	k.System = journal.AmazonLinux2023
	kubelet := config.Spec.Kubelet
	k.Taints = append(k.Taints, kubelet.Config.RegisterWithTaints...)
	if kubelet.Config.MaxPods > 0 {
		k.MaxPods = kubelet.Config.MaxPods
	}
	return k.readScript(strings.Join(kubelet.Flags, " "))
}

var (
	labelFlag = regexp.MustCompile(`--node-labels=["']?([^\s"']*)`)
	taintFlag = regexp.MustCompile(`--register-with-taints=["']?([^\s"']*)`)
)

// readScript finds the kubelet's flags in a script, such as a call of the older images'
// bootstrap script.
func (k *Kubelet) readScript(text string) error {
	for _, match := range labelFlag.FindAllStringSubmatch(text, -1) {
		for label := range strings.SplitSeq(match[1], ",") {
			if key, value, ok := strings.Cut(label, "="); ok {
				k.Labels[key] = value
			}
		}
	}
	for _, match := range taintFlag.FindAllStringSubmatch(text, -1) {
		for taint := range strings.SplitSeq(match[1], ",") {
			keyValue, effect, ok := strings.Cut(taint, ":")
			if !ok {
				return fmt.Errorf("the taint %q has no effect", taint)
			}
			key, value, _ := strings.Cut(keyValue, "=")
			k.Taints = append(k.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
		}
	}
	return nil
}

func (k *Kubelet) readBottlerocket(text string) error {
	var config struct {
		Settings struct {
			Kubernetes struct {
				MaxPods    int64               `toml:"max-pods"`
				NodeLabels map[string]string   `toml:"node-labels"`
				NodeTaints map[string][]string `toml:"node-taints"`
			} `toml:"kubernetes"`
		} `toml:"settings"`
	}
	if err := toml.Unmarshal([]byte(text), &config); err != nil {
		return err
	}
	k.System = journal.Bottlerocket
	kubernetes := config.Settings.Kubernetes
	k.MaxPods = kubernetes.MaxPods
	maps.Copy(k.Labels, kubernetes.NodeLabels)
	for key, taints := range kubernetes.NodeTaints {
		for _, taint := range taints {
			value, effect, _ := strings.Cut(taint, ":")
			k.Taints = append(k.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
		}
	}
	return nil
}
