package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"croft.dev/croft/internal/access/login"
)

const installHint = "croft logs people in; install it, and put it on the PATH"

type kubeconfigOptions struct {
	login     loginFlags
	tenant    string
	namespace string
	server    string
	authority string
	kubelogin bool
	robot     robotFlags
	embed     bool
	write     bool
}

func newKubeconfig(a *app) *cobra.Command {
	o := &kubeconfigOptions{}
	c := &cobra.Command{
		Use:   "kubeconfig --tenant NAME",
		Short: "Print a kubeconfig for a person or a robot of a tenant",
		Long: `Print a kubeconfig for a person of a tenant, or, with --robot, for one of its service
accounts. The context has the tenant's first namespace that you may see.

A person's kubeconfig contains no secret: clients call ` + "`croft login get-token`" + `, or kubelogin
with --kubelogin. Without --server it is for the cluster of the context in use.

With a robot's kubeconfig, clients call ` + "`croft kubeconfig token`" + `, which requests a
token of the service account for --duration each time, with your rights and your context.
For machines without croft, --embed-token writes a token that expires after --duration.`,
		Example: `  croft kubeconfig --tenant shop --server https://k8s.example.org --certificate-authority ca.crt --issuer https://login.example.org --write
  croft kubeconfig --tenant shop --kubelogin --issuer https://login.example.org --client-id kubernetes
  croft kubeconfig --tenant shop --robot deployer --write
  croft kubeconfig --tenant shop --robot deployer --embed-token --duration 1h > deployer.kubeconfig`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runKubeconfig(cmd, o) },
	}
	flags := c.Flags()
	flags.StringVar(&o.tenant, "tenant", "", "name of the tenant")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the context; the tenant's first if none is given")
	flags.StringVar(&o.server, "server", "", "URL of croft's proxy or of the API server; by default the server of the current context")
	flags.StringVar(&o.authority, "certificate-authority", "", "path of the CA bundle for --server; the system's by default")
	flags.BoolVar(&o.kubelogin, "kubelogin", false, "have kubelogin (kubectl oidc-login) log in instead of croft")
	flags.BoolVar(&o.write, "write", false, "merge the context into the kubeconfig file and make it the current one, instead of printing it")
	flags.BoolVar(&o.embed, "embed-token", false, "with --robot: write a token that expires after --duration, instead of a plugin that requests new ones")
	o.robot.addFlags(c)
	o.login.addFlags(flags)
	_ = c.MarkFlagRequired("tenant")
	c.MarkFlagsMutuallyExclusive("robot", "kubelogin")
	c.MarkFlagsMutuallyExclusive("robot", "issuer")
	refusePointlessFlags(c, "it is for --robot", func() bool { return o.robot.name == "" }, "embed-token", "duration")
	refusePointlessFlags(c, "it is for --server", func() bool { return o.server == "" }, "certificate-authority")
	c.AddCommand(newRobotToken(a))
	return c
}

// runKubeconfig prints or writes a kubeconfig.
func (a *app) runKubeconfig(cmd *cobra.Command, o *kubeconfigOptions) error {
	if len(validation.IsDNS1123Label(o.tenant)) > 0 {
		return fmt.Errorf("--tenant %s: write the name of a tenant: lower-case letters, digits and '-'", escapeLine(o.tenant))
	}
	if o.namespace != "" && len(validation.IsDNS1123Label(o.namespace)) > 0 {
		return fmt.Errorf("--namespace %s: write the name of a namespace: lower-case letters, digits and '-'", escapeLine(o.namespace))
	}
	cluster, err := o.buildClusterEntry(a)
	if err != nil {
		return err
	}
	name := "croft-" + o.tenant
	var user *clientcmdapi.AuthInfo
	if o.robot.name != "" {
		name += "-" + o.robot.name
		user, err = a.buildRobotUser(cmd.Context(), o, name)
	} else {
		user, err = a.buildPersonUser(cmd, o, cluster)
	}
	if err != nil {
		return err
	}
	return a.writeContext(name, o.namespace, cluster, user, o.write)
}

// writeContext prints a kubeconfig with one context, or merges it into the user's own.
func (a *app) writeContext(name, namespace string, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo, merge bool) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[name], config.AuthInfos[name] = cluster, user
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	config.CurrentContext = name
	if merge {
		return a.mergeKubeconfig(config)
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return toFailure(err)
	}
	_, err = a.out.Write(content)
	return toFailure(err)
}

// mergeKubeconfig writes a context, its cluster and its user as `kubectl config` does.
func (a *app) mergeKubeconfig(added *clientcmdapi.Config) error {
	config, err := a.cluster.rules.GetStartingConfig()
	if err != nil {
		return toFailure(err)
	}
	name := added.CurrentContext
	// Existing entries stay in their own file.
	cluster, user, context := added.Clusters[name], added.AuthInfos[name], added.Contexts[name]
	if was := config.Clusters[name]; was != nil {
		cluster.LocationOfOrigin = was.LocationOfOrigin
	}
	if was := config.AuthInfos[name]; was != nil {
		user.LocationOfOrigin = was.LocationOfOrigin
	}
	if was := config.Contexts[name]; was != nil {
		context.LocationOfOrigin = was.LocationOfOrigin
	}
	config.Clusters[name], config.AuthInfos[name], config.Contexts[name], config.CurrentContext = cluster, user, context, name
	if err := clientcmd.ModifyConfig(a.cluster.rules, *config, true); err != nil {
		return toFailure(err)
	}
	printSafely(a.err, "context %s is in the kubeconfig, and is the current one: try kubectl get pods\n", name)
	return nil
}

// buildClusterEntry returns the kubeconfig's cluster entry, with the certificate authorities
// embedded.
func (o *kubeconfigOptions) buildClusterEntry(a *app) (*clientcmdapi.Cluster, error) {
	if o.server == "" {
		name, context, config, err := a.findKubeContext()
		if err != nil {
			return nil, failuref("no cluster is configured: %w, or set the server with --server", err)
		}
		cluster := config.Clusters[context.Cluster]
		if cluster == nil {
			return nil, failuref("the kubeconfig's context %s names cluster %s, which the kubeconfig does not have", name, context.Cluster)
		}
		cluster = cluster.DeepCopy()
		cluster.LocationOfOrigin, cluster.Extensions = "", nil
		if cluster.CertificateAuthority != "" && len(cluster.CertificateAuthorityData) == 0 {
			if cluster.CertificateAuthorityData, err = os.ReadFile(cluster.CertificateAuthority); err != nil {
				return nil, toFailure(err)
			}
		}
		cluster.CertificateAuthority = ""
		return cluster, nil
	}
	server, err := url.Parse(o.server)
	if err != nil || server.Scheme != "https" || server.Host == "" || server.User != nil {
		return nil, fmt.Errorf("--server %s: write an https URL, such as https://k8s.example.org", escapeLine(o.server))
	}
	cluster := &clientcmdapi.Cluster{Server: o.server}
	if o.authority != "" {
		if cluster.CertificateAuthorityData, err = os.ReadFile(o.authority); err != nil {
			return nil, fmt.Errorf("--certificate-authority: %w", err)
		}
		if _, err := cert.ParseCertsPEM(cluster.CertificateAuthorityData); err != nil {
			return nil, fmt.Errorf("--certificate-authority %s: the file has no PEM certificate", escapeLine(o.authority))
		}
	}
	return cluster, nil
}

// buildPersonUser returns a user that logs in with croft login. It sets o.namespace if it is
// empty.
func (a *app) buildPersonUser(cmd *cobra.Command, o *kubeconfigOptions, cluster *clientcmdapi.Cluster) (*clientcmdapi.AuthInfo, error) {
	session, err := o.login.newSession(a, cmd)
	if err != nil {
		return nil, err
	}
	if o.namespace == "" {
		if o.namespace, err = a.findNamespace(cmd.Context(), o, session, cluster); err != nil {
			return nil, err
		}
	}
	if path := o.login.options.CertificateAuthority; path != "" {
		if o.login.options.CertificateAuthority, err = filepath.Abs(path); err != nil {
			return nil, toFailure(err)
		}
	}
	if o.kubelogin {
		return o.buildKubeloginUser(cmd.Context(), session)
	}
	return buildExecUser(findOwnCommand(), append(getToken[:len(getToken):len(getToken)], o.login.buildArgs()...), installHint), nil
}

// buildKubeloginUser returns a user that logs in with kubelogin (github.com/int128/kubelogin).
func (o *kubeconfigOptions) buildKubeloginUser(ctx context.Context, session *login.Session) (*clientcmdapi.AuthInfo, error) {
	scopes, err := session.Scopes(ctx)
	if err != nil {
		return nil, classifyLoginError(err)
	}
	l := &o.login.options
	args := []string{"oidc-login", "get-token", "--oidc-issuer-url=" + l.Issuer, "--oidc-client-id=" + l.ClientID}
	for _, scope := range scopes[1:] { // kubelogin adds openid itself
		args = append(args, "--oidc-extra-scope="+scope)
	}
	if l.ClientSecret != "" {
		args = append(args, "--oidc-client-secret="+l.ClientSecret)
	}
	if l.CertificateAuthority != "" {
		args = append(args, "--certificate-authority="+l.CertificateAuthority)
	}
	if l.Prompt != "" {
		args = append(args, "--oidc-auth-request-extra-params=prompt="+l.Prompt)
	}
	switch {
	case l.Device:
		args = append(args, "--grant-type=device-code")
	case l.RedirectURL != login.DefaultRedirect:
		args = append(args, "--oidc-redirect-url="+l.RedirectURL)
	}
	if o.login.noBrowser {
		args = append(args, "--skip-open-browser")
	}
	return buildExecUser("kubectl", args, "install kubelogin: https://github.com/int128/kubelogin"), nil
}

func buildExecUser(command string, args []string, hint string) *clientcmdapi.AuthInfo {
	return &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), Command: command, Args: args,
		InstallHint: hint, InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode,
	}}
}

// findOwnCommand returns the command that starts this program: its name if PATH leads to it,
// and otherwise its path.
func findOwnCommand() string {
	own, err := os.Executable()
	if err != nil {
		return "croft"
	}
	if found, err := exec.LookPath("croft"); err == nil && isSameFile(found, own) {
		return "croft"
	}
	return own
}

func isSameFile(one, other string) bool {
	first, err := os.Stat(one)
	second, err2 := os.Stat(other)
	return errors.Join(err, err2) == nil && os.SameFile(first, second)
}
