package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/pkg/browser"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientauthenticationv1beta1 "k8s.io/client-go/pkg/apis/clientauthentication/v1beta1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"croft.dev/croft/internal/access/login"
)

// envExecInfo is the environment variable with which kubectl and client-go pass their
// request to a credential plugin.
const envExecInfo = "KUBERNETES_EXEC_INFO"

// getToken is the command that acts as the credential plugin.
var getToken = []string{"login", "get-token"}

func newLogin(a *app) *cobra.Command {
	var f loginFlags
	c := &cobra.Command{
		Use:   "login",
		Short: "Log in at your identity provider",
		Long: `Log in at your identity provider (OpenID Connect), in the browser or with a code that
you enter on another device.

croft keeps the refresh token in the keyring of the operating system, or in a file that
only you can read if there is no keyring. kubectl, helm and other clients then get their
tokens from the credential plugin ` + "`croft login get-token`" + `, which ` + "`croft kubeconfig`" + `
writes into a kubeconfig.

If the kubeconfig's context uses that plugin, its flags are the defaults here.`,
		Example: `  croft login --issuer https://login.example.org --client-id croft
  croft login                # at the identity provider of the kubeconfig's context
  croft login --device       # on a machine without a browser
  croft login --account jane-admin --prompt login    # a second account, with a session of its own
  croft login forget         # delete the stored tokens`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			session, err := f.newSession(a, cmd)
			if err != nil {
				return err
			}
			token, err := session.Login(cmd.Context())
			if err != nil {
				return classifyLoginError(err)
			}
			a.printLogin(token, &f)
			return nil
		},
	}
	f.addFlags(c.Flags())
	c.AddCommand(newGetToken(a), newForget(a))
	return c
}

func newGetToken(a *app) *cobra.Command {
	var f loginFlags
	c := &cobra.Command{
		Use:   "get-token",
		Short: "Print your ID token for kubectl and other clients, as their credential plugin",
		Long: `Print an ExecCredential (client.authentication.k8s.io) with your ID token. With a
kubeconfig of ` + "`croft kubeconfig`" + `, kubectl and other clients call this command.

It prints the stored token, or a new one by the refresh token. Without either, you log
in as with ` + "`croft login`" + `; clients without a terminal get an error instead.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			request, err := a.readExecRequest()
			if err != nil {
				return err
			}
			session, err := f.newSession(a, cmd)
			if err != nil {
				return err
			}
			token, err := session.Token(cmd.Context(), request.interactive)
			if err != nil {
				return classifyLoginError(err)
			}
			return request.printToken(a.out, token.Raw, token.Expiry)
		},
	}
	f.addFlags(c.Flags())
	return c
}

func newForget(a *app) *cobra.Command {
	var f loginFlags
	c := &cobra.Command{
		Use:   "forget",
		Short: "Delete the stored tokens of a login",
		Long: `Delete the stored tokens of a login. The identity provider is not notified: its
session in the browser continues, and issued tokens stay valid until they expire.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			session, err := f.newSession(a, cmd)
			if err != nil {
				return err
			}
			return classifyLoginError(session.Forget(cmd.Context()))
		},
	}
	f.addFlags(c.Flags())
	return c
}

// loginFlags describe the identity provider and the way to log in.
type loginFlags struct {
	options   login.Options
	noBrowser bool
}

func (f *loginFlags) addFlags(flags *pflag.FlagSet) {
	o := &f.options
	flags.StringVar(&o.Issuer, "issuer", "", "URL of the identity provider, as in its tokens")
	flags.StringVar(&o.ClientID, "client-id", "croft", "ID of the client that the identity provider knows")
	flags.StringVar(&o.ClientSecret, "client-secret", "", "secret of the client, for providers that issue one to native applications")
	flags.StringVar(&o.Account, "account", "", "user to log in as, with a session of its own; one session for each provider and client by default")
	flags.StringVar(&o.CertificateAuthority, "issuer-certificate-authority", "", "path of the CA bundle for the identity provider; the system's by default")
	flags.StringSliceVar(&o.Scopes, "scope", nil, "scopes to request in addition to openid (default: those of "+strings.Join(login.DefaultScopes(), ", ")+" that the provider supports)")
	flags.StringVar(&o.Prompt, "prompt", "", "the provider's prompt, such as consent or select_account; some issue refresh tokens only after consent")
	flags.StringVar(&o.RedirectURL, "redirect-url", login.DefaultRedirect, "redirect URL, as registered at the provider; without a port, any free one")
	flags.StringVar(&o.GroupsClaim, "groups-claim", "groups", "claim that names your groups, for messages")
	flags.StringVar((*string)(&o.Storage), "token-storage", string(login.Auto), "storage of the refresh token: "+strings.Join(login.Storages(), "|"))
	flags.BoolVar(&o.Device, "device", false, "show a code to enter on another device")
	flags.BoolVar(&f.noBrowser, "no-browser", false, "print the URL, and do not open it")
}

// buildArgs returns the flags that differ from their defaults. It always includes the client's
// ID, so that the kubeconfig shows its purpose.
func (f *loginFlags) buildArgs() []string {
	written := *f
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	written.addFlags(flags) // sets the defaults
	written = *f
	var args []string
	flags.VisitAll(func(flag *pflag.Flag) {
		if _, isList := flag.Value.(pflag.SliceValue); isList {
			return
		}
		if value := flag.Value.String(); value != flag.DefValue || flag.Name == "client-id" {
			args = append(args, "--"+flag.Name+"="+value)
		}
	})
	for _, scope := range f.options.Scopes {
		args = append(args, "--scope="+scope)
	}
	return args
}

// newSession returns the login that the flags describe. Missing flags are taken from the
// kubeconfig's context.
func (f *loginFlags) newSession(a *app, cmd *cobra.Command) (*login.Session, error) {
	if !cmd.Flags().Changed("issuer") {
		if err := f.fillFromContext(a, cmd.Flags()); err != nil {
			return nil, err
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, failuref("no directory for the tokens: %w", err)
	}
	o := f.options
	o.Dir, o.Out, o.Sanitize = filepath.Join(cache, "croft", "login"), a.err, escapeLine
	if !f.noBrowser && hasBrowser() {
		browser.Stdout, browser.Stderr = io.Discard, io.Discard
		o.OpenBrowser = browser.OpenURL
	}
	session, err := login.New(o)
	return session, classifyLoginError(err)
}

// hasBrowser reports whether a browser can open outside of the terminal: on a machine
// without a display, xdg-open would start one inside it.
func hasBrowser() bool {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return true
	}
	return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != ""
}

// fillFromContext takes missing flags from the credential plugin of the kubeconfig's context.
func (f *loginFlags) fillFromContext(a *app, flags *pflag.FlagSet) error {
	args := a.findPluginArgs()
	if len(args) == 0 {
		return nil
	}
	var written loginFlags
	known := pflag.NewFlagSet("", pflag.ContinueOnError)
	known.SetOutput(io.Discard)
	written.addFlags(known)
	newClusterFlags().addFlags(known)
	if err := known.Parse(args); err != nil {
		return fmt.Errorf("the credential plugin of the kubeconfig's context is wrong: %w: rewrite it with croft kubeconfig", err)
	}
	var err error
	known.Visit(func(flag *pflag.Flag) {
		target := flags.Lookup(flag.Name)
		if target == nil || target.Changed || err != nil {
			return
		}
		from, isList := flag.Value.(pflag.SliceValue)
		if to, ok := target.Value.(pflag.SliceValue); ok && isList {
			err = to.Replace(from.GetSlice())
		} else {
			err = target.Value.Set(flag.Value.String())
		}
	})
	return err
}

// findPluginArgs returns the arguments of `croft login get-token` in the kubeconfig's context,
// or nil if the context uses another way to log in.
func (a *app) findPluginArgs() []string {
	_, context, config, err := a.findKubeContext()
	if err != nil {
		return nil
	}
	user := config.AuthInfos[context.AuthInfo]
	if user == nil || user.Exec == nil || len(user.Exec.Args) < len(getToken) || !slices.Equal(user.Exec.Args[:len(getToken)], getToken) {
		return nil
	}
	return user.Exec.Args[len(getToken):]
}

// findKubeContext returns the context that --context names, or the kubeconfig's current one.
func (a *app) findKubeContext() (name string, context *clientcmdapi.Context, config *clientcmdapi.Config, err error) {
	raw, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(a.cluster.rules, a.cluster.overrides).RawConfig()
	if err != nil {
		return "", nil, nil, err
	}
	name = a.cluster.overrides.CurrentContext
	if name == "" {
		name = raw.CurrentContext
	}
	if name == "" {
		return "", nil, nil, errors.New("the kubeconfig has no current context: name one with --context")
	}
	context = raw.Contexts[name]
	if context == nil {
		return "", nil, nil, fmt.Errorf("the kubeconfig has no context %s: name another with --context", name)
	}
	return name, context, &raw, nil
}

// printLogin prints the user's identity.
func (a *app) printLogin(token *login.Token, f *loginFlags) {
	printSafely(a.err, "logged in as %s until %s, groups: %s\n", escapeLine(token.User), token.Expiry.Local().Format(time.DateTime), escapeLine(formatList(token.Groups)))
	if !token.Renewable {
		printSafely(a.err, "croft: the identity provider returned no refresh token, so you have to log in again after that time: request the scope offline_access, or try --prompt consent\n")
	}
	if len(token.Groups) == 0 {
		printSafely(a.err, "croft: the token has no claim %s: have the identity provider add it for client %s\n", f.options.GroupsClaim, f.options.ClientID)
	}
}

// isInteractive reports whether standard input is a terminal, so that a user can log in.
func (a *app) isInteractive() bool {
	file, ok := a.in.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

// readExecRequest is a Kubernetes client's request to its credential plugin.
type execRequest struct {
	apiVersion  string
	interactive bool
}

// readExecRequest reads the client's request. Without one, it assumes the newest version.
func (a *app) readExecRequest() (*execRequest, error) {
	asked := os.Getenv(envExecInfo)
	if asked == "" {
		return &execRequest{apiVersion: clientauthenticationv1.SchemeGroupVersion.String(), interactive: a.isInteractive()}, nil
	}
	var credential clientauthenticationv1.ExecCredential
	if err := json.Unmarshal([]byte(asked), &credential); err != nil || credential.Kind != "ExecCredential" {
		return nil, fmt.Errorf("%s is not an ExecCredential in JSON: only Kubernetes clients set it", envExecInfo)
	}
	switch credential.APIVersion {
	case clientauthenticationv1.SchemeGroupVersion.String(), clientauthenticationv1beta1.SchemeGroupVersion.String():
	default:
		return nil, fmt.Errorf("%s: apiVersion %s is not supported: write client.authentication.k8s.io/v1 into the kubeconfig", envExecInfo, escapeLine(credential.APIVersion))
	}
	return &execRequest{apiVersion: credential.APIVersion, interactive: credential.Spec.Interactive}, nil
}

// printToken prints a token. The versions v1 and v1beta1 of ExecCredential have the token in
// the same field.
func (r *execRequest) printToken(w io.Writer, token string, expiry time.Time) error {
	end := metav1.NewTime(expiry)
	return formatJSON.print(w, &clientauthenticationv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: r.apiVersion, Kind: "ExecCredential"},
		Status:   &clientauthenticationv1.ExecCredentialStatus{Token: token, ExpirationTimestamp: &end},
	})
}

// oneLineError is an error whose text comes partly from the network. It prints as one line.
type oneLineError struct{ error }

func (e oneLineError) Error() string { return escapeLine(e.error.Error()) }

func (e oneLineError) Unwrap() error { return e.error }

// classifyLoginError distinguishes bad input from errors of the identity provider.
func classifyLoginError(err error) error {
	var wrong *login.BadInputError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong), errors.Is(err, context.Canceled):
		return oneLineError{err}
	default:
		return toFailure(oneLineError{err})
	}
}
